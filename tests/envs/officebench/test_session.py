"""A task played by tool calls in a sandbox: the loop, its limits and messages, what agents may write, and what they cannot do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envs.officebench.actions import normalise, parse
from envs.officebench.adapter import OfficeBench, OfficeBenchConfig
from envs.officebench.session import MALFORMED, listing
from harness.contracts import Call, Reply, Session, Usage
from harness.errors import ConfigError, ContentRefused, SetupError
from harness.sandbox.base import SandboxError
from harness.store.view import RunView
from tests.support.build import played, scripted

Make = Callable[..., OfficeBench]
FINISH = {"app": "system", "action": "finish_task", "answer": "42"}


def act(session: Session, **action: Any) -> str:
    return session.step(session.normalise(json.dumps(action))).observation


def shell(session: Session, command: str) -> str:
    return act(session, app="shell", action="command", command=command)


class TestActions:
    @pytest.mark.parametrize(
        "text",
        [
            '{"app": "excel", "action": "read_file", "file_path": "a b.xlsx"}',
            "I open it.\n```json\n{'app': 'excel', 'action': 'read_file', 'file_path': ['a b.xlsx']}\n```\nThen I see.",
            "{'app': 'excel', 'action': 'read_file', 'file_path': 'a b.xlsx',}",
        ],
    )
    def test_json_or_a_python_dict_somewhere_in_the_text(self, text: str) -> None:
        assert normalise(text) == '{"app": "excel", "action": "read_file", "file_path": "a b.xlsx"}'

    def test_switching_belongs_to_the_system_whatever_the_app_says(self) -> None:
        found = parse("{'app': 'word', 'action': 'switch_app', 'target_app': 'pdf'}")
        assert found is not None and (found.app, found.name) == ("system", "switch_app")

    @pytest.mark.parametrize(
        "text", ["", "open the file", "{app: excel}", "[1]", "{'a': 1}", "{'app': 1, 'action': 'x'}", "{1: 2}", "{" * 9000]
    )
    def test_anything_else_is_no_action(self, text: str) -> None:
        assert parse(text) is None and normalise(text) == text.strip()

    @given(st.text(max_size=60) | st.dictionaries(st.sampled_from(["app", "action", "x"]), st.text(max_size=5)).map(str))
    def test_normalising_is_idempotent(self, text: str) -> None:
        assert normalise(normalise(text)) == normalise(text)


class TestLoop:
    def test_an_app_is_chosen_and_its_actions_are_listed(self, environment: Make) -> None:
        made = environment()
        with made.open(made.tasks()[0], 0) as session:
            assert session.observation == "Today is 2030-01-07 (Monday), 9:00 AM. You work for the user Ann.\nTask: Task 1-1/0."
            assert (
                "- excel: " in session.instructions
                and "/testbed" in session.instructions
                and "- system" not in session.instructions
            )
            seen = act(session, app="system", action="switch_app", target_app="excel")
            assert seen == f"Switched to excel. Its actions:\n{listing('excel')}"
            assert '{"app": "excel", "action": "set_cell", "file_path": "…"' in seen

    def test_the_answer_is_graded_and_ends_the_task(self, environment: Make) -> None:
        made = environment()
        with made.open(made.tasks()[0], 0) as session:
            result = session.step(json.dumps(FINISH))
            assert result.done and session.outcome().score == 1.0
            assert session.outcome().metrics["end"] == "finished"

    def test_what_an_app_does_is_graded(self, environment: Make) -> None:
        made = environment()
        with made.open(made.tasks()[1], 0) as session:
            done = act(
                session, app="excel", action="set_cell", file_path="/testbed/data/prices.xlsx", row_idx=3, column_idx=2, text="7"
            )
            assert done.startswith("Success")
            assert session.outcome().success

    def test_a_malformed_action_is_a_message_and_spends_the_turn(self, environment: Make) -> None:
        made = environment()
        with made.open(made.tasks()[0], 0) as session:
            result = session.step(session.normalise("I would open the file."))
            assert (result.observation, result.error) == (MALFORMED, "malformed action")
            assert act(session, app="exel", action="read_file") == (
                "There is no app 'exel'. Did you mean excel? The apps are: calendar, excel, ocr, pdf, shell, word, email, llm, system."
            )
            assert session.outcome().metrics["malformed"] == 2

    def test_five_times_the_same_action_is_stuck_and_the_fifth_is_not_played(self, environment: Make) -> None:
        made = environment()
        with made.open(made.tasks()[0], 0) as session:
            for _ in range(4):
                assert not session.step('{"app": "shell", "action": "command", "command": "echo x >> data/log"}').done
            result = session.step('{"app": "shell", "action": "command", "command": "echo x >> data/log"}')
            assert result.done and result.observation == "The same action came 5 times in a row: the task is ended."
            assert session.outcome().metrics["end"] == "stuck" and session.outcome().metrics["steps"] == 5

    def test_an_action_is_stopped_at_its_limit_and_the_apps_go_on(self, environment: Make) -> None:
        made = environment(command_seconds=1.0)
        with made.open(made.tasks()[0], 0) as session:
            assert (
                shell(session, "sleep 60")
                == "The action was stopped: it took longer than 1 s. The current folder is /testbed again."
            )
            assert shell(session, "echo on") == "on"

    def test_a_killed_server_is_an_observation_and_the_apps_go_on(self, environment: Make) -> None:
        made = environment()
        with made.open(made.tasks()[0], 0) as session:
            assert shell(session, "kill -9 $PPID") == "The application ended before it answered."
            assert shell(session, "echo on") == "on"

    def test_modules_left_in_the_scratch_space_do_not_keep_the_apps_from_starting(self, environment: Make) -> None:
        made = environment()
        with made.open(made.tasks()[0], 0) as session:
            spoil = (
                "import os, site; where = site.getusersitepackages(); os.makedirs(where, exist_ok=True); "
                "open(where + '/usercustomize.py', 'w').write('import os; os._exit(3)')"
            )
            shell(session, f'python3 -c "{spoil}"; echo "raise SystemExit" > json.py; pkill -9 -f server.py')
            assert shell(session, "echo here") == "here"

    def test_an_action_after_which_the_apps_cannot_start_is_scored(
        self, environment: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made = environment()
        with made.open(made.tasks()[0], 0) as session:
            assert shell(session, "echo here") == "here"
            session._office.close()  # type: ignore[attr-defined]
            monkeypatch.setattr(session._office, "_server", ["false"])  # type: ignore[attr-defined]
            assert "do not start any more" in shell(session, "echo here")
            session.step(json.dumps(FINISH))
            assert session.outcome().status == "completed"

    def test_apps_that_do_not_start_are_the_sandboxs_fault(self, environment: Make, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("envs.officebench.apps.command", lambda *_: ("python3", "-c", "raise SystemExit(1)"))
        made = environment()
        with (
            made.open(made.tasks()[0], 0) as session,
            pytest.raises(SandboxError, match="The applications do not start in the sandbox"),
        ):
            shell(session, "true")

    def test_long_observations_are_cut_in_the_middle(self, environment: Make) -> None:
        made = environment()
        with made.open(made.tasks()[0], 0) as session:
            seen = shell(session, "seq 10000")
            assert len(seen) < 8100 and "[…]" in seen and seen.startswith("1\n2\n")


class Model:
    """A model that answers once and then refuses."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def complete(self, call: Call) -> Reply:
        self.calls.append(call)
        if len(self.calls) > 1:
            raise ContentRefused("no")
        return Reply("four", Usage(), "m")


def test_the_llm_app_asks_the_acting_model_in_its_own_role(environment: Make) -> None:
    made = environment(llm_tokens=70)
    with made.open(made.tasks()[0], 0) as session:
        model = Model()
        session.use_models(model)  # type: ignore[attr-defined]
        assert act(session, app="llm", action="complete_text", prompt="2 + 2?") == "four"
        assert act(session, app="llm", action="complete_text", prompt="3 + 3?") == "The model gave no answer: no"
    call = model.calls[0]
    assert (call.role, call.key, call.phase, call.max_tokens, call.temperature) == (
        "env.officebench.llm",
        "actor",
        "act",
        70,
        0.0,
    )
    assert call.messages == ({"role": "user", "content": "2 + 2?"},)


ESCAPES = {
    "network": "python3 -c \"import socket; socket.create_connection(('192.0.2.1', 80), 2)\"",
    "writing outside": "echo x > /usr/lib/escaped; echo x > /etc/escaped",
    "fork bomb": "bomb() { bomb | bomb & }; bomb",
    "memory bomb": "python3 -c \"x = 'a' * (8 << 30)\"",
    "endless loop": "while :; do :; done",
    "killing the parent": "kill -9 $PPID; kill -9 1; kill -9 -1",
    "a link to a secret": "rm -rf data; ln -s / data; ln -s /etc/passwd emails/ann; ln -s /etc/shadow answer.txt",
    "reading the checks": "grep -rl excel_cell_value / --include=0.json 2>/dev/null; cat OFFICE/tasks/1-1/subtasks/0.json",
    "a huge file": "dd if=/dev/zero of=data/huge bs=1M count=70 2>/dev/null; ls data | head -3",
}


@pytest.mark.slow
@pytest.mark.parametrize("sandbox", ["docker", "bubblewrap"])
def test_escapes_are_stopped_each_task_is_scored_and_the_stream_goes_on(
    environment: Make, office: Path, tmp_path: Path, sandbox: str
) -> None:
    """All of them, one after the other, then a proper answer: that is what is scored, in every task."""
    environment(sandbox=sandbox)
    path = office / "tasks" / "1-1" / "subtasks" / "0.json"
    (path.parent / "1.json").write_text(path.read_text())
    checks = path.read_text()
    env = {"name": "officebench", "apps": [1], "data_dir": str(office), "sandbox": sandbox, "command_seconds": 4.0}
    commands = [command.replace("OFFICE", str(office)) for command in ESCAPES.values()]
    replies = [json.dumps({"app": "shell", "action": "command", "command": command}) for command in commands]
    models = scripted("replies", replies=[*replies, json.dumps(FINISH)])
    directory = played(tmp_path / "runs", env=env, models=models, run={"tasks": 2})
    rows = RunView(directory).tasks()
    assert [(row.score, row.status, row.steps) for row in rows] == [(1.0, "completed", len(ESCAPES) + 1)] * 2
    assert "keywords" not in (directory / "events.jsonl").read_text()  # the checks were never seen
    assert path.read_text() == checks
    assert not Path("/usr/lib/escaped").exists() and not Path("/etc/escaped").exists()


def test_a_link_out_of_the_workspace_is_left_out_of_grading(environment: Make, tmp_path: Path) -> None:
    made = environment()
    task = next(task for task in made.tasks() if task.task_id == "1-2/0")
    bait = tmp_path / "bait.ics"
    bait.write_text("SUMMARY:Lunch\nDTSTART:20300107T120000\n")
    with made.open(task, 0) as session:
        shell(session, f"ln -s {bait} calendar/Ann.ics")
        outcome = session.outcome()
    assert not outcome.success and outcome.metrics["files_left_out"] == 1


def folders() -> set[str]:
    return {path.name for path in Path(tempfile.gettempdir()).glob("memarena-officebench-*")}


def test_a_task_leaves_no_folder_and_what_a_killed_process_left_is_removed(
    environment: Make, office: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"  # of this test alone, which may run beside others
    scratch.mkdir(mode=0o755)
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    code = f"""
        import time
        from envs.officebench.adapter import OfficeBench, OfficeBenchConfig
        made = OfficeBench(OfficeBenchConfig(data_dir={str(office)!r}, sandbox="bubblewrap"))
        with made.open(made.tasks()[0], 0) as session:
            session.step(session.noop_action)
            print("open", flush=True)
            time.sleep(60)
    """
    environment()
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "open\n"
        assert len(folders()) == 1
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    left = folders()
    assert len(left) == 1
    made = environment()
    with made.open(made.tasks()[0], 0) as session:
        session.step(session.noop_action)
        session.outcome()
        assert not left & folders()
    assert folders() == set()


class TestEnvironment:
    def test_tasks_come_in_the_official_order_by_numbers(self, environment: Make) -> None:
        made = environment()
        assert [task.task_id for task in made.tasks()] == ["1-1/0", "1-1/1", "1-2/0", "2-1/0", "2-10/0", "3-1/0"]
        assert [(task.index, task.group, task.family) for task in made.tasks()][3:5] == [
            (3, "2-app", "2-1"),
            (4, "2-app", "2-10"),
        ]

    def test_a_choice_of_tasks_keeps_the_indices(self, environment: Make) -> None:
        assert [task.index for task in environment(apps=[2, 3]).tasks()] == [3, 4, 5]
        assert environment(apps=[2, 3]).provenance["source"] == "other, 3 of 6 tasks"

    @pytest.mark.parametrize(
        "evaluation", [None, [], "contain", [3], [{"function": "evaluate_magic", "args": {}}], [{"function": "evaluate_contain"}]]
    )
    def test_a_check_that_is_none_is_an_error_and_no_task_that_is_always_lost(
        self, environment: Make, office: Path, evaluation: Any
    ) -> None:
        path = office / "tasks" / "1-1" / "subtasks" / "0.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "evaluation": evaluation}))
        with pytest.raises(SetupError, match="0.json cannot be read: its evaluation is no list of known checks"):
            environment().tasks()

    def test_the_digest_covers_the_files(self, environment: Make, office: Path) -> None:
        before = environment().data_digest
        assert environment().data_digest == before
        (office / "tasks" / "1-1" / "testbed" / "data" / "prices.xlsx").write_bytes(b"other")
        assert environment().data_digest != before

    def test_what_is_missing_is_named(self, tmp_path: Path) -> None:
        problems = OfficeBench(OfficeBenchConfig(data_dir=str(tmp_path), sandbox="process")).check()
        assert problems[0].fix == "make data-officebench"

    @pytest.mark.parametrize(
        "values",
        [
            {"grader": "strict"},
            {"sandbox": "vm"},
            {"apps": [4]},
            {"apps": []},
            {"max_steps": 0},
            {"llm_tokens": 0},
            {"memory_mib": 1},
        ],
    )
    def test_bad_values_are_refused(self, values: dict[str, Any]) -> None:
        with pytest.raises(ConfigError):
            OfficeBenchConfig(**values)


@pytest.mark.parametrize("sandbox", ["docker", "bubblewrap"])
def test_the_oracle_plays_every_task_through_host_and_sandbox(
    environment: Make, office: Path, tmp_path: Path, sandbox: str
) -> None:
    environment(sandbox=sandbox)
    env = {"name": "officebench", "data_dir": str(office), "sandbox": sandbox}
    view = RunView(played(tmp_path / "runs", env=env, host={"name": "autogen"}))
    assert [row.score for row in view.tasks()] == [1.0] * 6
    assert {row.task_group for row in view.tasks()} == {"1-app", "2-app", "3-app"}
