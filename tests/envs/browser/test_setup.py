"""`make setup-webarena` without network: wheels and browsers are made up here."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from envs.browser import provision
from scripts import setup_webarena
from scripts.setup_webarena import Failed, Wheel, from_wheel, install_browser, link, unpack


def program(path: Path, text: str = "echo Chromium 1.2") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing can be downloaded and nothing is installed."""
    monkeypatch.setattr(setup_webarena, "_download", lambda target: None)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))


def test_only_the_wanted_folder_of_a_wheel_is_unpacked(tmp_path: Path) -> None:
    wheel = tmp_path / "a.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in ("pkg/data/a.html", "pkg/data/sub/b.js", "pkg/code.py", "pkg/data/../../evil", "pkg/database/c"):
            archive.writestr(name, name)
    assert unpack(wheel, "pkg/data", tmp_path / "out") == 2
    found = sorted(str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert found == ["a.html", "sub/b.js"]
    with pytest.raises(Failed, match=r"a\.whl has no pkg/nothing\."):
        unpack(wheel, "pkg/nothing", tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_what_is_there_is_not_fetched_again(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    assert from_wheel(Wheel("no-such-package==1", "0" * 64, "x", "data"), tmp_path) == "there already"


def test_a_browser_of_this_machine_is_linked_to_where_playwright_looks(tmp_path: Path, no_network: None) -> None:
    program(tmp_path / "bin" / "chromium")
    target = tmp_path / "cache" / provision.BINARY_IN_CACHE
    assert install_browser(target, None) == "Chromium 1.2 (linked to chromium)"
    assert install_browser(target, None) == "Chromium 1.2, there already"


def test_a_named_browser_must_run(tmp_path: Path, no_network: None) -> None:
    target = tmp_path / provision.BINARY_IN_CACHE
    with pytest.raises(Failed, match=r"There is no program no-chrome\."):
        install_browser(target, "no-chrome")
    with pytest.raises(Failed, match="does not run"):
        link(program(tmp_path / "broken", "exit 127"), target)
    assert link(program(tmp_path / "own"), target) == "Chromium 1.2 (linked to own)"


def test_without_a_browser_it_is_said_what_to_do(tmp_path: Path, no_network: None) -> None:
    with pytest.raises(Failed, match="sudo apt-get install chromium-headless-shell"):
        install_browser(tmp_path / provision.BINARY_IN_CACHE, None)
