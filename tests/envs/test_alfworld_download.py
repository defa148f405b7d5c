from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from envs.alfworld import data

SCRIPT = Path(__file__).parents[2] / "scripts" / "data_alfworld.py"


@pytest.fixture
def downloader(tmp_path: Path) -> Path:
    """A stand-in for alfworld-download, beside a link to this Python, so that the script finds it before the real one."""
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    program = bin_folder / "alfworld-download"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return program


def _run(downloader: Path | None, root: Path, *options: str, expect: int = 134) -> subprocess.CompletedProcess[str]:
    """The script with `downloader` in the place of the real one and a split of `expect` games."""
    code = (
        "import sys, runpy\nsys.argv = sys.argv[1:]\nfrom envs.alfworld import data\n"
        f"data.OFFICIAL_COUNTS = {{'valid_unseen': {expect}}}\nimport shutil\n"
        f"shutil.which = lambda name, path=None: {str(downloader) if downloader else None!r}\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    command = [sys.executable, "-c", code, str(SCRIPT), "--root", str(root), *options]
    return subprocess.run(command, capture_output=True, text=True, cwd=SCRIPT.parents[1], env=dict(os.environ), check=False)


def _official(games_root: Path, to: Path) -> None:
    for split in ("valid_unseen", "valid_seen", "train"):
        shutil.copytree(games_root / data.GAMES / "valid_unseen", to / data.GAMES / split)


def test_a_download_that_leaves_no_games_is_an_error(downloader: Path, tmp_path: Path) -> None:
    done = _run(downloader, tmp_path / "data")
    assert done.returncode == 1 and done.stderr.startswith("error: There are no ALFWorld games") and done.stderr.count("\n") == 1


def test_a_download_that_fails_says_so(downloader: Path, tmp_path: Path) -> None:
    downloader.write_text(
        "#!/bin/sh\nprintf '10%%\\r' >&2\nsleep 0.2\nprintf 'Traceback (most recent)\\n  line\\nOSError: no network\\n' >&2\nexit 3\n"
    )
    done = _run(downloader, tmp_path / "data")
    assert done.returncode == 1 and done.stderr.startswith("10%") and "ended with code 3: OSError: no network." in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_downloader_is_an_error_with_the_command(tmp_path: Path) -> None:
    done = _run(None, tmp_path / "data")
    assert done.returncode == 2 and "pip install '.[alfworld]'" in done.stderr


def test_the_downloader_is_told_the_place_and_its_games_are_checked(downloader: Path, games_root: Path, tmp_path: Path) -> None:
    _official(games_root, tmp_path / "server")
    downloader.write_text(f'#!/bin/sh\n[ "$1" = --data-dir ] && [ "$ALFWORLD_DATA" = "$2" ] && cp -r {tmp_path}/server/* "$2"\n')
    done = _run(downloader, tmp_path / "data", expect=12)
    assert done.returncode == 0, done.stderr
    assert "valid_unseen: complete" in done.stdout and str(tmp_path / "data") in done.stdout


def test_complete_data_are_not_fetched_again_unless_asked(downloader: Path, games_root: Path, tmp_path: Path) -> None:
    _official(games_root, tmp_path / "data")
    downloader.write_text("#!/bin/sh\nexit 3\n")
    assert _run(downloader, tmp_path / "data", expect=12).returncode == 0
    forced = _run(downloader, tmp_path / "data", "--force", expect=12)
    assert forced.returncode == 0 and "ended with code 3" in forced.stderr  # what it failed at was not the games
