"""Made-up office tasks in the official layout; nothing of the benchmark's own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from envs.officebench.adapter import OfficeBench, OfficeBenchConfig
from harness.contracts import Task

Write = Callable[..., Path]


def check(function: str, **arguments: Any) -> dict[str, Any]:
    return {"function": f"evaluate_{function}", "args": arguments}


def record(evaluation: Sequence[Mapping[str, Any]], goal: str = "Do it.") -> dict[str, Any]:
    return {
        "username": "Ann",
        "date": "2030-01-07",
        "weekday": "Monday",
        "time": "9:00 AM",
        "task": goal,
        "evaluation": list(evaluation),
    }


def task_of(folder: Path, *evaluation: Mapping[str, Any]) -> Task:
    payload = {**record(evaluation), "folder": str(folder)}
    return Task("1-1/0", 0, "Do it.", "1-app-Do it.", "1-1", "1-app", payload)


def workbook(path: Path, rows: Sequence[Sequence[Any]]) -> Path:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(list(row))
    path.parent.mkdir(parents=True, exist_ok=True)
    book.save(path)
    return path


@pytest.fixture
def office(tmp_path: Path) -> Path:
    """A data folder with six made-up tasks of one to three applications."""
    root = tmp_path / "officebench"
    tasks = {
        "1-1/0": [check("contain", doc_type="txt", file="data/answer.txt", keywords=["42"])],
        "1-1/1": [check("excel_cell_value", file="data/prices.xlsx", matches=[{"row": "3", "col": "2", "value": "7"}])],
        "1-2/0": [check("contain", doc_type="ics", file="calendar/Ann.ics", keywords=["Lunch", "DTSTART:20300107T120000"])],
        "2-1/0": [
            check("file_exist", file="data/letter.docx"),
            check("contain", doc_type="email", username="Ann", keywords=["hello"]),
        ],
        "2-10/0": [check("file_not_exist", file="data/prices.xlsx")],
        "3-1/0": [check("contain", doc_type="docx", file="data/a b.docx", keywords=["over", "1,000"])],
    }
    for name, evaluation in tasks.items():
        folder, number = name.split("/")
        path = root / "tasks" / folder / "subtasks" / f"{number}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(record(evaluation, goal=f"Task {name}.")))
        workbook(root / "tasks" / folder / "testbed" / "data" / "prices.xlsx", [["what", "price"], ["tea", 3]])
    for folder in [root, *root.parents][:4]:
        folder.chmod(0o755)
    return root


@pytest.fixture
def environment(office: Path) -> Callable[..., OfficeBench]:
    def make(**values: Any) -> OfficeBench:
        made = OfficeBench(OfficeBenchConfig(**{"data_dir": str(office), "sandbox": "bubblewrap", **values}))
        if problems := made.check():
            pytest.skip(problems[0].what)
        return made

    return make
