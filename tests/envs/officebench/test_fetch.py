"""`make data-officebench` on a made-up archive: what is unpacked, what is refused, and that nothing is fetched twice."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from envs.officebench.dataset import load, records_digest
from scripts import data_officebench


@pytest.fixture
def root(office: Path, tmp_path: Path) -> Path:
    """A folder that holds the archive already, so that nothing has to be fetched."""
    (office / "apps").mkdir()
    (office / "apps" / "code.py").write_text("no")
    (office / "tasks" / "1-1" / "outputs").mkdir()
    (office / "tasks" / "1-1" / "outputs" / "x.json").write_text("{}")
    (office / "tasks" / "1-1" / "testbed" / "data" / "link").symlink_to("/etc/passwd")
    (office / "LICENSE").write_text("Apache")
    made = tmp_path / "fetched"
    made.mkdir()
    with tarfile.open(made / f"officebench-{data_officebench.REVISION[:8]}.tar.gz", "w:gz") as tar:
        tar.add(office, arcname="OfficeBench-x")
    return made


ARGUMENTS = ["--source", "http://127.0.0.1:9"]


def test_other_tasks_than_the_known_ones_are_refused(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert data_officebench.main(["--root", str(root), *ARGUMENTS]) == 1
    assert "the 6 tasks are not those that this version of MemArena knows. Run this again" in capsys.readouterr().err


def test_tasks_and_their_files_are_unpacked_and_nothing_else(
    root: Path, office: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("envs.officebench.dataset.OFFICIAL", records_digest(load(office)))
    assert data_officebench.main(["--root", str(root), *ARGUMENTS]) == 0
    assert capsys.readouterr().out == f"OfficeBench is in {root}: 6 tasks, 12 files.\n"
    found = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file() or path.is_symlink()}
    assert "tasks/1-1/subtasks/0.json" in found and "tasks/1-1/testbed/data/prices.xlsx" in found and "LICENSE" in found
    assert not [path for path in found if "link" in path or "outputs" in path or "apps" in path or path.endswith(".gz")]
    assert records_digest(load(root)) == records_digest(load(office))


def test_an_address_that_does_not_answer_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert data_officebench.main(["--root", str(tmp_path / "new"), *ARGUMENTS]) == 1
    err = capsys.readouterr().err
    assert err.startswith("error: ConnectError: ") and err.count("\n") == 1
