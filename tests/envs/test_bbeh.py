"""BBEH-mini: the matcher on made-up answers, the adapter on made-up questions, the fetcher against a local server."""

from __future__ import annotations

import hashlib
import http.server
import json
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envs.bbeh import grade
from envs.bbeh.adapter import QUESTIONS, Bbeh, BbehConfig
from envs.bbeh.split import sample, train_positions
from harness.errors import ConfigError, SetupError
from harness.store.view import RunView
from scripts import data_bbeh
from tests.support.build import played


@pytest.mark.parametrize(
    ("response", "target", "right"),
    [
        ("The answer is: 42", "42", True),
        ("I think 41. The answer is: 41\nNo. The answer is: 42.", "42", True),
        ("The final answer is: (B)", "(B)", True),
        ("The answer is (b).", "(B)", True),
        ("b", "(B)", True),
        ("(B)", "B", True),
        ("(C)", "(B)", False),
        ("the answer is: 42", "42", False),  # prefixes are case-sensitive
        ("42.0", "42", True),
        ("1e2", "100", True),
        ("The answer is: $\\boxed{42}$", "42", True),
        ("$\\text{pen}$", "pen", True),
        ("**Pen**", "pen", True),
        ("A, B,C", "A,B, C", True),
        ("[a, b]", "a,b", True),
        ("a,b", "[a,b]", True),
        ("don't", "dont", True),
        ("who?", "who", True),
        ("who", "who?", False),
        ("42\nbecause", "42", True),
        ("because\n42", "42", False),
        ("", "[]", True),  # as published: the one question that doing nothing answers
        ("", "42", False),
    ],
)
def test_the_matcher_is_as_lenient_and_as_strict_as_published(response: str, target: str, right: bool) -> None:
    assert grade(response, target) is right


@given(st.text(max_size=60), st.text(max_size=20))
def test_grading_never_raises(response: str, target: str) -> None:
    assert grade(response, target) in (True, False)


@given(st.integers(-(10**6), 10**6), st.integers(1, 10**6))
def test_a_number_is_right_and_another_is_wrong(number: int, other: int) -> None:
    assert grade(f"So it is.\nThe answer is: {number}.", str(number))
    assert not grade(f"The answer is: {number + other}", str(number))


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    """460 made-up questions of 23 kinds."""
    rows = [{"input": f"Question {i}?", "target": str(i)} for i in range(QUESTIONS)]
    (tmp_path / "mini.json").write_text(json.dumps({"examples": rows}))
    labelled = [{"task": f"bbeh_kind{i % 23}", "index": i // 23, **row} for i, row in enumerate(rows)]
    (tmp_path / "mini_labeled.json").write_text(json.dumps(labelled))
    return tmp_path


def test_the_split_has_92_and_368_stored_positions(questions: Path) -> None:
    splits = {name: Bbeh(BbehConfig(split=name, data_dir=str(questions))).tasks() for name in ("all", "train", "test")}
    assert {name: len(tasks) for name, tasks in splits.items()} == {"all": 460, "train": 92, "test": 368}
    assert {task.index for task in splits["train"]} == train_positions()
    assert not {task.index for task in splits["train"]} & {task.index for task in splits["test"]}


def test_sampling_takes_four_of_each_category_whatever_the_order() -> None:
    categories = [f"kind{i % 23}" for i in range(460)]
    chosen = sample(categories)
    assert len(chosen) == 92 and {sum(categories[i] == name for i in chosen) for name in set(categories)} == {4}


def test_the_oracle_is_right_and_the_digest_tells_splits_apart(questions: Path, tmp_path: Path) -> None:
    env = {"name": "bbeh", "data_dir": str(questions)}
    view = RunView(played(tmp_path / "runs", env=env, run={"tasks": 20}))
    assert sum(row.success for row in view.tasks()) == 20
    digests = {Bbeh(BbehConfig(split=name, data_dir=str(questions))).data_digest for name in ("all", "train", "test")}
    assert len(digests) == 3


def test_missing_and_broken_data_are_named(tmp_path: Path) -> None:
    (problem,) = Bbeh(BbehConfig(data_dir=str(tmp_path))).check()
    assert problem.fix == "make data-bbeh"
    (tmp_path / "mini.json").write_text('{"examples": []}')
    with pytest.raises(SetupError, match="0 questions instead of 460"):
        Bbeh(BbehConfig(data_dir=str(tmp_path))).tasks()
    with pytest.raises(ConfigError, match=r"env\.split"):
        BbehConfig(split="dev")


class Server(http.server.SimpleHTTPRequestHandler):
    """Serves a folder, with byte ranges, silently."""

    def log_message(self, *args: object) -> None:
        return None

    def do_GET(self) -> None:
        content = Path(self.translate_path(self.path))
        if not content.is_file():
            self.send_error(404)
            return
        data, start = content.read_bytes(), 0
        if given := self.headers.get("Range"):
            start = int(given.removeprefix("bytes=").rstrip("-"))
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        self.wfile.write(data[start:])


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A mirror of the official layout with made-up questions."""
    root = tmp_path / "mirror"
    rows = []
    for name in data_bbeh.CATEGORIES:
        own = [{"input": f"{name} {i}", "target": "x"} for i in range(25)]
        rows += own[:20]
        path = root / "benchmark_tasks" / f"bbeh_{name}" / "task.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps({"examples": own}))
    (root / "mini").mkdir()
    (root / "mini" / "data.json").write_text(json.dumps({"examples": rows}))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Server, directory=str(root)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", root
    server.shutdown()
    server.server_close()


def test_fetching_continues_a_part_checks_the_digest_and_labels(
    mirror: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url, root = mirror
    target = tmp_path / "data"
    arguments = ["--root", str(target), "--source", url]
    assert data_bbeh.main(arguments) == 1  # not the official questions
    assert "has changed since" in capsys.readouterr().err and not (target / "mini.json").exists()
    whole = (root / "mini" / "data.json").read_bytes()
    monkeypatch.setattr(data_bbeh, "MINI_SHA256", hashlib.sha256(whole).hexdigest())
    (target / "mini.json.part").write_bytes(whole[:100])
    assert data_bbeh.main(arguments) == 0
    assert (target / "mini.json").read_bytes() == whole
    environment = Bbeh(BbehConfig(data_dir=str(target)))
    assert environment.check() == [] and len({task.family for task in environment.tasks()}) == 23
    assert data_bbeh.main(["--root", str(target), "--source", "http://127.0.0.1:9/nothing"]) == 0  # all there: no network needed


def test_no_network_is_one_clear_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert data_bbeh.main(["--root", str(tmp_path), "--source", "http://127.0.0.1:9"]) == 1
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
