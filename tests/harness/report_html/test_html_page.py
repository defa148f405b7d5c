"""What the page's file holds, read without a browser."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from html_runs import CALL, HOSTILE, write_run

from harness.cli import main
from harness.report.contrast import contrast
from harness.report.html.page import build
from harness.report.html.texts import Repeats
from harness.store.events import EventLog, read_events
from harness.store.view import RunView
from tests.support.build import played


def chunks(path: Path) -> dict[str, Any]:
    found = re.findall(r'<script type="text/plain" id="([^"]+)">([^<]*)</script>', path.read_text())
    return {name: json.loads(zlib.decompress(base64.b64decode(packed))) for name, packed in found}


def summary(path: Path) -> Any:
    return json.loads(re.search(r'<script type="application/json" id="summary">(.*?)</script>', path.read_text(), re.DOTALL)[1])  # type: ignore[index]


def test_the_same_runs_give_the_same_bytes(runs: list[Path], tmp_path: Path) -> None:
    first, second = (build([RunView(run) for run in runs], tmp_path / name).path for name in ("a", "b"))
    assert first.read_bytes() == second.read_bytes()
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["index.html"]


def test_the_policy_names_the_page_s_own_script_and_style_and_nothing_else(report: Path) -> None:
    page = report.read_text()
    hashes = {
        kind: base64.b64encode(hashlib.sha256(re.search(pattern, page, re.DOTALL)[1].encode()).digest()).decode()  # type: ignore[index]
        for kind, pattern in (("script", r"<script>(.*?)</script>"), ("style", r"<style>(.*?)</style>"))
    }
    assert re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1] == (  # type: ignore[index]
        f"default-src 'none'; script-src 'sha256-{hashes['script']}'; style-src 'sha256-{hashes['style']}';"
        " base-uri 'none'; form-action 'none'"
    )


def test_nothing_is_loaded_from_elsewhere(report: Path) -> None:
    page = re.sub(r'<script type="[^"]+" id="[^"]+">[^<]*</script>', "", report.read_text())
    addresses = set(re.findall(r"https?://[^\s\"'`)]+", page))
    assert addresses == {"http://www.w3.org/2000/svg"}  # a name, not a place
    assert " src=" not in page


def test_hostile_text_cannot_leave_its_element(report: Path) -> None:
    page = report.read_text()
    assert HOSTILE[:20] not in page and "\u2028" not in page
    assert page.count("<script") == page.count("</script>") == 2 + len(chunks(report))


def test_a_title_is_text(runs: list[Path], tmp_path: Path) -> None:
    page = build([RunView(runs[0])], tmp_path, title="<b>[[script]]</b>").path.read_text()
    assert "<title>&lt;b&gt;[[script]]&lt;/b&gt;</title>" in page


def test_prompts_are_written_as_what_is_new(report: Path) -> None:
    calls = [item for item in chunks(report)["c0-2"]["items"] if item["t"] == "call"]
    assert calls[0]["prompt"] == [["system", "You are the solver."], ["user", "Room 2\n> "]]
    assert calls[1]["prompt"] == [["system", [1, 0, None]], ["user", [1, 1, "> go to shelf 1\nYou arrive at shelf 1."]]]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", ""),
        ("a", ""),
        ("", "a"),
        ("a\n\nb", "a\nb"),
        ("a\nb", "a\n\nb"),
        ("a\na\na", "a\na"),
        ("a\na", "a\na\na"),
        ("a", "b"),
    ],
)
def test_texts_are_restored_exactly(before: str, after: str) -> None:
    repeats = Repeats()
    repeats.encode("k", before)
    found = repeats.encode("k", after)
    if isinstance(found, tuple):
        start, end, middle = found
        lines = before.split("\n")
        found = "\n".join([*lines[:start], *([] if middle is None else middle.split("\n")), *(lines[-end:] if end else [])])
    assert found == after


def test_prompts_can_be_left_out(runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(runs[0]), "-o", str(tmp_path), "--no-prompts"]) == 0
    assert capsys.readouterr().out.startswith(f"{tmp_path / 'index.html'}: 1 runs, 8 tasks, 8 transcripts, 0.1 MB")
    assert all("prompt" not in item for chunk in chunks(tmp_path / "index.html").values() for item in chunk["items"])


def test_secrets_and_places_of_this_machine_are_masked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "swordfish-0123456789"
    monkeypatch.setenv("REPORT_TEST_KEY", secret)
    monkeypatch.setenv("HOME", "/home/somebody")
    run = write_run(tmp_path / "runs", "run", "none", [1], labels={"variant": f"key={secret}, path=/home/somebody/x"})
    log = run / "events.jsonl"
    log.write_text(log.read_text().replace("Room 0", f"{secret} in /home/somebody/room and {run}"))
    path = build([RunView(run)], tmp_path / "out").path
    everything = path.read_text() + json.dumps(list(chunks(path).values()))
    assert secret not in everything and "/home/somebody" not in everything and str(tmp_path) not in everything
    assert "[removed: REPORT_TEST_KEY] in <home>/room and <runs>/run" in everything


def test_secrets_of_several_lines_and_fields_that_hold_one_are_masked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPORT_TEST_KEY", "first half of it\nsecond half of it")
    run = write_run(tmp_path / "runs", "run", "none", [1])
    log = run / "events.jsonl"
    log.write_text(log.read_text().replace("Room 0", r"Room first half of it\nsecond half of it"))
    with EventLog(log) as events:
        events.append("attempt_start", {"position": 1, "attempt": 1, "task_id": "lost"})
        events.append("note", {"position": 1, "password": "hunter2"})
    everything = json.dumps(list(chunks(build([RunView(run)], tmp_path / "out").path).values()))
    assert "half of it" not in everything and "hunter2" not in everything
    assert "Room [removed: REPORT_TEST_KEY]" in everything and '"password": "[removed: password]"' in everything


def test_a_page_that_cannot_be_finished_leaves_the_one_before(
    runs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = build([RunView(runs[0])], tmp_path).path.read_bytes()

    def full(*_: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("harness.report.html.page._frame", full)
    with pytest.raises(OSError, match="No space left"):
        build([RunView(run) for run in runs], tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["index.html"] and (tmp_path / "index.html").read_bytes() == before


def test_the_page_tests_as_compare_does(tmp_path: Path) -> None:
    steps = range(40)
    runs = [
        write_run(tmp_path, "one", "none", [step % 7 / 8 for step in steps]),
        write_run(tmp_path, "other", "sepm", [step % 5 / 4 for step in steps]),
        write_run(tmp_path, "some", "metagpt", [*(float(step % 3 == 0) for step in steps), 0.5]),
        write_run(tmp_path, "most", "voyager", [float(step % 4 == 0) for step in steps]),
    ]
    views = [RunView(run) for run in runs]
    versus = summary(build(views, tmp_path / "out").path)["versus"]
    for first, second in ((1, 0), (3, 2)):
        name, baseline = runs[first].name, runs[second].name
        tests = contrast([views[first]], [views[second]])["tests"]
        expected = tests["mcnemar"] or tests["permutation"]
        assert versus[baseline][name]["p"] == expected["p"] and 0.001 < expected["p"] < 1
    assert versus["some"]["most"]["test"] == "exact McNemar"  # graded is only a task that the other has not
    assert versus["one"]["other"]["test"] == "sign-flip permutation"


def test_two_runs_of_one_name_are_told_apart(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / place, "run", "none", [1]) for place in ("a", "b")]
    found = summary(build([RunView(run) for run in runs], tmp_path / "out").path)
    assert [run["id"] for run in found["runs"]] == ["run", "run (2)"]
    assert found["versus"]["run"]["run (2)"]["change"] == 0.0


def test_a_run_without_results_is_shown_as_that(tmp_path: Path) -> None:
    run = write_run(tmp_path / "runs", "run", "none", [])
    shown = summary(build([RunView(run)], tmp_path / "out").path)["runs"][0]
    assert (shown["score"], shown["tokens"], shown["cost"], shown["curve"]) == (None, None, None, [])


def test_embeddings_that_were_estimated_do_not_mark_the_methods_tokens(tmp_path: Path) -> None:
    embedding = replace(CALL, kind="embedding", usage_source="estimate")
    runs = [write_run(tmp_path / "runs", name, "none", [1], call) for name, call in (("chat", CALL), ("embeds", embedding))]
    rough = write_run(tmp_path / "runs", "rough", "none", [1], replace(CALL, usage_source="estimate"))
    shown = summary(build([RunView(run) for run in [*runs, rough]], tmp_path / "out").path)["runs"]
    assert [run["tokens"]["estimated"] for run in shown] == [False, False, True]


def test_graded_scores_are_tested_by_permutation(report: Path) -> None:
    found = summary(report)["versus"]["none-run"]
    assert found["sepm/run"]["test"] == "exact McNemar" and found["graded"]["test"] == "sign-flip permutation"


def test_no_runs_is_an_error_that_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--root", str(tmp_path)]) == 2
    assert capsys.readouterr().err == (
        f"memarena: There are no runs below {tmp_path}. Name some, or say where they are with --root.\n"
    )


def test_a_played_stream_tells_its_plan_and_its_memory(tmp_path: Path) -> None:
    run = played(tmp_path / "runs", method={"name": "sepm"}, env={"n": 2})
    kinds = [event["kind"] for event in read_events(run / "events.jsonl") if event["event"] == "memory_note"]
    assert kinds.count("graph") == 2
    chunk = chunks(build([RunView(run)], tmp_path / "out").path)["c0-0"]
    assert chunk["memory"]["brief"].startswith("Shared plan")


def test_a_played_stream_tells_which_past_tasks_it_read(tmp_path: Path) -> None:
    run = played(tmp_path / "runs", method={"name": "metagpt", "embedder": "hash256"}, env={"n": 2})
    found = chunks(build([RunView(run)], tmp_path / "out").path)
    (change,) = [item for item in found["c0-0"]["items"] if item["t"] == "memory_note"]
    assert (change["item"], change["change"], change["why"]) == ("past task 1", "added", "a success")
    (card,) = found["c0-1"]["memory"]["cards"]
    assert change["after"].startswith("Filed under: ") and change["after"].endswith(card["task"])
