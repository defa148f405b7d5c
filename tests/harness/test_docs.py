"""The documentation tells the truth: its code runs, its files exist, its commands parse."""

from __future__ import annotations

import re
import shlex
import sys
import types
from pathlib import Path

import pytest

from harness.cli import _parser
from harness.store.view import RunView
from tests.support.build import played

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")])


def test_the_method_in_the_readme_works_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(code.strip().splitlines()) <= 34
    module = types.ModuleType("methods.last_success")
    monkeypatch.setitem(sys.modules, "methods.last_success", module)
    exec(compile(code, "README.md", "exec", dont_inherit=True), module.__dict__)
    from methods.catalogue import CATALOGUE

    monkeypatch.setitem(CATALOGUE, "last_success", "methods.last_success:LastSuccess")
    directory = played(tmp_path, method={"name": "last_success"})
    assert all(row.success for row in RunView(directory).tasks())
    assert "Task: pair-press" in (directory / "events.jsonl").read_text()  # the card is in a prompt


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
class TestEveryPage:
    def test_links_lead_somewhere(self, page: Path) -> None:
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text()):
            assert target.startswith("http") or (page.parent / target).exists(), target

    def test_memarena_commands_parse(self, page: Path) -> None:
        for block in re.findall(r"```(?:bash|sh)?\n(.*?)```", page.read_text(), re.DOTALL):
            for line in block.splitlines():
                for command in re.split(r"&&|\|", line.split("#")[0]):
                    words = shlex.split(command)
                    if words[:1] == ["memarena"]:
                        _parser().parse_args(words[1:])

    def test_make_targets_exist(self, page: Path) -> None:
        targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
        for name in re.findall(r"`?make ([a-z0-9-]+)", page.read_text()):
            assert name in targets or name in {"a", "it", "every", "sure", "what"}, name
