"""`memarena doctor env=webarena`: what `check` only looks at is tried where all looks well."""

from __future__ import annotations

import pytest

from envs.webarena import dataset
from envs.webarena.adapter import WebArena
from harness.contracts import Problem
from harness.doctor import examine

pytestmark = pytest.mark.skipif(dataset.path() is None, reason="libwebarena is not installed (make setup-webarena)")


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines() if " env webarena " in line]


def test_a_login_that_fails_is_found_before_a_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(WebArena, "check", lambda self: [])
    monkeypatch.setattr(WebArena, "probe", lambda self: [Problem("login at gitlab: refused", "reset the sites")])
    assert examine(["env=webarena", "models=scripted"]) == 1
    assert lines(capsys) == ["missing env webarena login at gitlab: refused → reset the sites"]


def test_nothing_is_tried_while_something_is_missing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def never(self: WebArena) -> list[Problem]:
        raise AssertionError("tried")

    monkeypatch.setattr(WebArena, "probe", never)
    assert examine(["env=webarena", "models=scripted"]) == 1
    found = lines(capsys)
    assert any("Addresses of sites are not known: shopping, shopping_admin" in line for line in found)


def test_without_the_package_it_says_so_and_nothing_else_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "path", lambda: None)
    made = WebArena()
    assert made.provenance["tasks"] == 0
    assert all("shopping" not in problem.what for problem in made.check())
