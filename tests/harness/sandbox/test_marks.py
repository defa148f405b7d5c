"""Folders that say whose they are: what a killed process left behind goes when the next one makes its own."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from harness.sandbox.marks import alive, make_marked_folder, marked_folder, process_mark


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_this_process_is_alive_and_one_with_its_number_but_another_start_is_not() -> None:
    pid, _, started = process_mark().partition("-")
    assert alive(process_mark())
    assert not alive(f"{pid}-{int(started) + 1}") and not alive("999999999-1") and not alive("nonsense")


def test_without_proc_nothing_of_a_living_process_is_taken_for_a_dead_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.sandbox.marks._started", lambda pid: None)  # as on macOS
    with marked_folder("memarena-x") as outer:
        make_marked_folder("memarena-x")
        assert alive(process_mark()) and outer.is_dir()
    assert not alive("999999999-None")


def test_a_folder_lives_as_long_as_its_block(scratch: Path) -> None:
    with marked_folder("memarena-x") as folder:
        assert folder.is_dir() and folder.parent == scratch
    assert not folder.exists()


def test_folders_of_the_dead_go_and_those_of_the_living_and_of_others_stay(scratch: Path) -> None:
    dead, other = scratch / "memarena-x-999999999-1-abc", scratch / "memarena-y-999999999-1-abc"
    dead.mkdir()
    other.mkdir()
    mine = make_marked_folder("memarena-x")
    make_marked_folder("memarena-x")
    assert mine.is_dir() and other.is_dir() and not dead.exists()
