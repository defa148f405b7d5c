"""KramaBench: typed graders, the split rule, the code session in a sandbox, the judge; on made-up questions."""

from __future__ import annotations

import hashlib
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envs.kramabench import grade
from envs.kramabench.adapter import DOMAINS, KramaBench, KramaBenchConfig
from envs.kramabench.split import train_count, train_ids
from harness.contracts import Call, Reply, Session, Usage
from harness.errors import ConfigError, SetupError
from harness.store.view import RunView
from scripts import data_kramabench
from tests.support.build import played, scripted


def record(answer: Any, kind: str, **more: Any) -> dict[str, Any]:
    return {"answer": answer, "answer_type": kind, **more}


@pytest.mark.parametrize(
    ("answer", "task", "score"),
    [
        ("4321.9876", record(4321.9876, "numeric_exact"), 1.0),
        ("4,321.9876", record(4321.9876, "numeric_exact"), 1.0),
        ("4321.988", record(4321.9876, "numeric_exact"), 1.0),  # within 1e-6 relative
        ("4322.1", record(4321.9876, "numeric_exact"), 0.0),
        ("12.34%", record(12.34, "numeric_exact"), 1.0),
        ("12.34%", record(0.1234, "numeric_exact"), 1.0),
        ("$5", record(5, "numeric_exact"), 1.0),
        ("five", record(5, "numeric_exact"), 0.0),
        ("nan", record(5, "numeric_exact"), 0.0),
        ("True", record(1, "numeric_exact"), 0.0),
        ("15", record(10, "numeric_approximate"), 1 / 1.5),
        ("10.0", record(10, "numeric_approximate"), 1.0),
        ("unknown", record(10, "numeric_approximate"), 0.0),
        ("1", record(0, "numeric_approximate"), 0.5),
        (" são  tomé. ", record("São Tomé", "string_exact"), 1.0),
        ("Rio", record("São Tomé", "string_exact"), 0.0),
        ("1913", record("1913", "string_exact"), 1.0),
        ("1999, the Southeast", record("Southeast, 1999", "string_approximate"), 1.0),
        ("Southeast, 1998", record("Southeast, 1999", "string_approximate"), 0.0),
        ("Southeast, never 1999", record("Southeast, 1999", "string_approximate"), 0.0),
        ("['b', 'a']", record(["a", "b"], "list_exact"), 1.0),
        ("a, b", record(["a", "b"], "list_exact"), 1.0),
        ("a", record(["a", "b"], "list_exact"), 0.0),
        ("[a, b, c]", record(["a", "b"], "list_exact"), 0.0),
        ("[1903, 1911]", record([1903, 1911], "list_exact"), 1.0),
        ("a, a", record(["a", "b"], "list_exact"), 0.0),
        ("[1.005, 9]", record([1.0, 2.0], "list_approximate"), 0.5),
        ("", record([1.0], "list_approximate"), 0.0),
        ("pebble beach", record("Pebble Beach", "numeric_exact"), 1.0),  # mistyped gold
        ("b", record("a", "string_exact", accepted_answers=["b"]), 1.0),
    ],
)
def test_typed_graders(answer: str, task: dict[str, Any], score: float) -> None:
    assert grade(answer, task) == pytest.approx(score)


_VALUES = st.one_of(st.text(max_size=20), st.integers(), st.floats(allow_nan=False), st.lists(st.text(max_size=5), max_size=4))
_TYPES = st.sampled_from(
    ["string_exact", "string_approximate", "numeric_exact", "numeric_approximate", "list_exact", "list_approximate"]
)


@given(_VALUES, _VALUES, _TYPES)
def test_grading_never_raises_and_stays_in_range(answer: Any, gold: Any, kind: str) -> None:
    assert 0.0 <= grade(answer, record(gold, kind)) <= 1.0


@given(st.one_of(st.integers(-(10**9), 10**9), st.floats(-1e9, 1e9)), st.sampled_from(["numeric_exact", "numeric_approximate"]))
def test_a_number_scores_one_as_itself_and_as_text(gold: float, kind: str) -> None:
    assert grade(gold, record(gold, kind)) == grade(str(gold), record(gold, kind)) == 1.0


def test_the_split_rule_reproduces_table_9() -> None:
    counts = {
        "archeology": (6, 6),
        "astronomy": (6, 6),
        "biomedical": (3, 6),
        "environment": (6, 14),
        "legal": (14, 16),
        "wildfire": (7, 14),
    }
    assert [train_count(easy) + train_count(hard) for easy, hard in counts.values()] == [4, 4, 3, 5, 7, 5]
    ids = [
        f"{name}-{level}-{i + 1}"
        for name, sizes in counts.items()
        for level, n in zip(("easy", "hard"), sizes, strict=True)
        for i in range(n)
    ]
    assert len(train_ids(ids)) == 28 and train_ids(ids) == train_ids(list(reversed(ids))) <= set(ids)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Two made-up domains of three questions each, with a file."""
    for domain in ("legal", "wildfire"):
        rows = [
            {
                "id": f"{domain}-easy-{i}",
                "query": f"How much is {i}?",
                "answer": i,
                "answer_type": "numeric_exact",
                "data_sources": ["a.csv"],
                "subtasks": [],
            }
            for i in range(3)
        ]
        (tmp_path / f"{domain}.json").write_text(json.dumps(rows))
        (tmp_path / domain / "input").mkdir(parents=True)
        (tmp_path / domain / "input" / "a.csv").write_text("x\n1\n2\n")
    for folder in [tmp_path, *tmp_path.parents][:3]:
        folder.chmod(0o755)
    return tmp_path


def environment(lake: Path, **values: Any) -> KramaBench:
    defaults = {"domains": ["legal", "wildfire"], "data_dir": str(lake), "sandbox": "bubblewrap"}
    made = KramaBench(KramaBenchConfig(**{**defaults, **values}))
    if problems := made.check():
        pytest.skip(problems[0].what)
    return made


class TestSession:
    def run(self, session: Session, code: str) -> str:
        return session.step(session.normalise(f"Let me see.\n```python\n{code}\n```\nmore talk")).observation

    def test_variables_live_on_and_the_last_value_is_shown(self, lake: Path) -> None:
        made = environment(lake)
        with made.open(made.tasks()[0], 0) as session:
            assert self.run(session, "import os\nfiles = os.listdir('/data')") == "(no output)"
            assert self.run(session, "files") == "['a.csv']"
            assert self.run(session, "print(open('/data/a.csv').read())") == "x\n1\n2"

    def test_an_error_is_shown_with_its_line_and_the_session_goes_on(self, lake: Path) -> None:
        made = environment(lake)
        with made.open(made.tasks()[0], 0) as session:
            assert self.run(session, "x = 1\n1 / 0") == "Error: line 2: ZeroDivisionError: division by zero"
            assert self.run(session, "x") == "1"

    def test_an_endless_cell_is_stopped_and_the_session_starts_anew(self, lake: Path) -> None:
        made = environment(lake, cell_seconds=1.0)
        with made.open(made.tasks()[0], 0) as session:
            assert "stopped after 1 s" in self.run(session, "while True: pass")
            assert self.run(session, "1 + 1") == "2"

    @pytest.mark.parametrize("code", ["import os; os._exit(3)", "import os, signal; os.kill(os.getpid(), 9)", "exit()"])
    def test_a_cell_that_ends_the_interpreter_ends_only_that(self, lake: Path, code: str) -> None:
        made = environment(lake)
        with made.open(made.tasks()[0], 0) as session:
            self.run(session, code)
            assert self.run(session, "1 + 1") == "2"

    def test_the_data_cannot_be_changed_nor_the_gold_be_read(self, lake: Path) -> None:
        made = environment(lake)
        with made.open(made.tasks()[0], 0) as session:
            assert "Error" in self.run(session, "open('/data/a.csv', 'w')")
            assert "Error" in self.run(session, f"open({str(lake / 'legal.json')!r})")
        assert (lake / "legal" / "input" / "a.csv").read_text() == "x\n1\n2\n"

    def test_long_output_is_cut_in_the_middle(self, lake: Path) -> None:
        made = environment(lake)
        with made.open(made.tasks()[0], 0) as session:
            shown = self.run(session, "print('a' * 9000)")
            assert len(shown) < 5000 and "[…]" in shown

    def test_normalising_is_idempotent_and_finds_code_before_answers(self, lake: Path) -> None:
        made = environment(lake)
        with made.open(made.tasks()[0], 0) as session:
            for text in ("```python\nx\n```\nANSWER: 3", "So:\nFinal answer: [1, 2]\nbye", "**ANSWER: 3**", "nothing"):
                once = session.normalise(text)
                assert session.normalise(once) == once
            assert session.normalise("ANSWER: 3\n```python\nx\n```") == "```python\nx\n```"
            assert session.normalise("nothing") == ""

    def test_the_answer_is_what_follows_the_mark_on_its_line(self, lake: Path) -> None:
        made = environment(lake)
        with made.open(made.tasks()[0], 0) as session:
            for text in ("**\n\n**Answer :\n 3 \nbye", "- final answer: 3\t\r\nANSWER: 4", "x\n> ANSWER:3"):
                assert session.normalise(text) == "ANSWER: 3"
            assert session.normalise("my answer: 3") == session.normalise("ANSWER:  \n ") == ""

    @pytest.mark.parametrize("line", ["- \n", "\n", "answer\n", "answer:" + " " * 100 + "\n"])
    def test_an_answer_of_lines_without_words_comes_to_an_end(self, lake: Path, line: str) -> None:
        made = environment(lake)
        with made.open(made.tasks()[0], 0) as session:
            session.normalise(line * 100_000)  # took the square of its lines: hours


def test_the_oracle_is_right_through_host_and_sandbox(lake: Path, tmp_path: Path) -> None:
    environment(lake)
    env = {"name": "kramabench", "domains": ["legal", "wildfire"], "data_dir": str(lake), "sandbox": "bubblewrap"}
    view = RunView(played(tmp_path / "runs", env=env, host={"name": "autogen"}))
    assert [(row.score, row.steps) for row in view.tasks()] == [(1.0, 2)] * 6
    assert {row.task_group for row in view.tasks()} == {"legal", "wildfire"}


class Yes:
    """A judge that always says yes."""

    def complete(self, call: Call) -> Reply:
        assert call.role == "env.judge" and call.key == "eval_judge"
        return Reply("Yes.", Usage(), "judge")


def test_the_judge_decides_where_it_is_the_grader(lake: Path) -> None:
    made = environment(lake, grader="judge")
    with made.open(made.tasks()[0], 0) as session:
        session.use_models(Yes())  # type: ignore[arg-type]
        session.step("ANSWER: something")
        assert session.outcome().score == 1.0


def test_the_judges_calls_are_in_the_ledger_but_not_in_the_methods_total(lake: Path, tmp_path: Path) -> None:
    """TOK-R5."""
    environment(lake)
    env = {"name": "kramabench", "domains": ["legal"], "data_dir": str(lake), "sandbox": "bubblewrap", "grader": "judge"}
    view = RunView(played(tmp_path / "runs", env=env, models=scripted("oracle")))
    judged = [row for row in view.usage("role") if row.group == ("env.judge",)]
    assert judged and judged[0].calls == 3
    assert view.usage(method_only=True)[0].calls == view.usage()[0].calls - 3


@pytest.mark.parametrize("text", ["{not", "[1]", '{"a": 1}', '[{"id": "legal-easy-1"}]', "[{}]"])
def test_questions_that_cannot_be_read_are_one_clear_error(lake: Path, text: str) -> None:
    (lake / "legal.json").write_text(text)
    with pytest.raises(SetupError, match="legal.json is no list of KramaBench's questions") as caught:
        KramaBench(KramaBenchConfig(domains=["legal"], data_dir=str(lake))).tasks()
    assert "make data-kramabench" in caught.value.hint


def test_a_question_without_its_files_is_one_clear_error(lake: Path) -> None:
    rows = json.loads((lake / "legal.json").read_text())
    del rows[1]["data_sources"]
    (lake / "legal.json").write_text(json.dumps(rows))
    with pytest.raises(SetupError, match="KeyError: 'data_sources'"):
        KramaBench(KramaBenchConfig(domains=["legal"], data_dir=str(lake))).tasks()


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    problems = KramaBench(KramaBenchConfig(data_dir=str(tmp_path), sandbox="process")).check()
    assert len(problems) == len(DOMAINS) and all("make data-kramabench" in problem.fix for problem in problems)


@pytest.mark.parametrize(
    "values", [{"split": "dev"}, {"grader": "llm"}, {"sandbox": "vm"}, {"domains": ["law"]}, {"domains": []}, {"max_steps": 0}]
)
def test_bad_values_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        KramaBenchConfig(**values)


def test_fetching_unpacks_questions_and_inputs_only_and_checks_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The archive is made up and comes from disk: what matters is what is unpacked, and what is refused."""
    source, root = tmp_path / "Kramabench-x", tmp_path / "data"
    files = {
        "workload/legal.json": "[]",
        "data/legal/input/sub/a.csv": "x",
        "data/legal/notes.txt": "no",
        "benchmark/metrics.py": "no",
    }
    for name, text in files.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text)
    (source / "data/legal/input/link").symlink_to("/etc/passwd")
    root.mkdir()
    with tarfile.open(root / f"kramabench-{data_kramabench.REVISION}.tar.gz", "w:gz") as tar:
        tar.add(source, arcname="Kramabench-x")
    assert data_kramabench.main(["--root", str(root), "--source", "http://127.0.0.1:9"]) == 1  # the archive is there already
    assert "are not those that this version" in capsys.readouterr().err
    monkeypatch.setattr(data_kramabench, "SHA256", {"legal": hashlib.sha256(b"[]").hexdigest()})
    assert data_kramabench.main(["--root", str(root), "--source", "http://127.0.0.1:9"]) == 0
    assert sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.is_file() or p.is_symlink()) == [
        "legal.json",
        "legal/input/sub/a.csv",
    ]
