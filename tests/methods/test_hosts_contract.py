"""What holds for every host, over the registry: bounded, reconciled, host-neutral hooks, the same in every run."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.registry import hosts
from harness.store import canonical
from harness.store.view import RunView
from tests.support.build import played, scripted
from tests.support.fakes import TASK, FakeModels, FakeSession, SpyMemory, session, team_memory


@pytest.mark.parametrize("name", hosts().names())
class TestEveryHost:
    def test_usage_is_reconciled_with_the_ledger(self, name: str, tmp_path: Path) -> None:
        """TOK-R7: the stream commits a task only if its ledger equals what the gateway counted; and all of it has a role."""
        view = RunView(played(tmp_path, host={"name": name}, models=scripted("oracle", dissent=0.3), env={"n": 8}))
        (total,) = view.usage()
        by_role = view.usage("role")
        assert view.status == "finished" and all(row.group[0].startswith(f"host.{name}.") for row in by_role)
        assert sum(row.total_tokens for row in by_role) == total.total_tokens > 0
        assert sum(attempt["calls"] for attempt in view.attempts()) == total.calls

    def test_the_phase_of_trials_is_left_to_trials(self, name: str, tmp_path: Path) -> None:
        """`validate` is what a memory's rehearsals cost (harness/contracts/memory.py); no host plays one."""
        grid = {"dylan": {"nodes": 4, "rounds": 3, "critic": True}}.get(name, {})
        models = scripted("replies", replies=[f"say {number}" for number in range(7)])
        view = RunView(
            played(tmp_path, host={"name": name, **grid}, method={"name": "metagpt_pool", "verify_every": 1}, models=models)
        )
        phases = {row.group for row in view.usage("role", "phase")}
        assert "validate" not in {phase for _, phase in phases}
        if name.startswith("dylan"):
            assert (f"host.{name}.ranker", "act") in phases

    @pytest.mark.parametrize("text", ["", "  \n "])
    def test_empty_completions_end(self, name: str, text: str, tmp_path: Path) -> None:
        models = scripted("replies", replies=[text])
        view = RunView(played(tmp_path, host={"name": name}, models=models, env={"n": 1, "max_steps": 3}))
        assert view.status == "finished" and not view.tasks()[0].success

    def test_the_memorys_hooks_run_once_a_step_and_every_actor_is_in_the_team(self, name: str) -> None:
        host = hosts().load(name)(hosts().load(name).Config(), 0)  # type: ignore[call-arg]
        memory, models = (
            SpyMemory(),
            FakeModels(
                lambda call: {"selector": "solver" if len(models.calls) % 4 == 1 else "environment"}.get(
                    call.role.rpartition(".")[2], "look"
                )
            ),
        )
        inner = FakeSession()
        host.play(session(inner, memory, max_steps=3), team_memory(memory), models)  # type: ignore[arg-type]
        assert [turn.step for turn in memory.after] == list(range(1, len(inner.actions) + 1)) and inner.actions
        acting = {member.name for member in host.team(TASK) if member.acts}
        assert {turn.agent for turn in memory.after} <= acting and {agent for agent, _ in memory.before} <= acting

    def test_a_stream_is_the_same_in_every_run(self, name: str, tmp_path: Path) -> None:
        runs = [
            played(tmp_path / place, host={"name": name}, method={"name": "gmemory"}, models=scripted("oracle", dissent=0.3))
            for place in "ab"
        ]
        assert canonical.digest(runs[0]) == canonical.digest(runs[1])
