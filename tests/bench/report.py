"""What a report of ten runs of 134 tasks weighs, and how long a browser takes until it can be used.

`python -m tests.bench.report [TASKS]`. Five memories play generated ALFWorld games with a scripted model, prompts and all; each
run is then taken twice, under another seed, for a report costs by its transcripts and not by what they say.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from envs.browser import provision
from harness.report.html.page import build
from harness.store.view import find_runs

METHODS = "none,metagpt,generative,gmemory,sepm"
LARGEST, SLOWEST = 25e6, 2.0  # what a report may weigh (bytes) and take (seconds)
PHONE = 4  # times slower than this machine
OPENED = 5  # of how many the median is taken


def play(root: Path, tasks: int) -> None:
    """Ten runs below `root`."""
    overrides = ["host=autogen", "env=alfworld", "models=scripted-learner", "env.source=generated", f"method={METHODS}"]
    overrides += [f"env.games_per_family={-(-tasks // 6)}", f"run.tasks={tasks}", f"run.root={root}", "run.progress=off"]
    subprocess.run([sys.executable, "-m", "harness", "run", "-m", "-j", "2", *overrides], check=True, capture_output=True)
    for run in sorted(root.iterdir()):
        copy = run.with_name(re.sub(r"-s0\b", "-s1", run.name))
        shutil.copytree(run, copy)
        manifest = json.loads((copy / "manifest.json").read_text())
        (copy / "manifest.json").write_text(json.dumps({**manifest, "name": copy.name, "seed": 1}))


def opening(browser: Any, address: str, slower: int) -> float:
    """Seconds from the request to the end of loading, the view being drawn: the median of some cold starts."""
    times = []
    for _ in range(OPENED):
        context = browser.new_context(viewport={"width": 390, "height": 844} if slower > 1 else {"width": 1280, "height": 900})
        page = context.new_page()
        context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": slower})
        start = time.perf_counter()
        page.goto(address, wait_until="load")
        page.wait_for_selector("main h1", state="attached")
        times.append(time.perf_counter() - start)
        context.close()
    return statistics.median(times)


def views(path: Path) -> dict[str, str]:
    """What is opened: the results, the tasks, and a task straight from its address."""
    summary = json.loads(re.search(r'id="summary">(.*?)</script>', path.read_text(), re.DOTALL)[1])  # type: ignore[index]
    run = summary["runs"][-1]
    task = max(run["transcripts"], key=run["transcripts"].__getitem__)  # its transcript comes last in the file
    quoted = [part.replace("%", "%25").replace("/", "%2F").replace("+", "%2B") for part in (run["id"], task)]
    return {"results": "", "tasks": "#/tasks", "a task": f"#{'/'.join(quoted)}"}


def main(tasks: int) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch) / "runs"
        root.mkdir()
        play(root, tasks)
        found = list(find_runs(root))
        log = sum((view.directory / "events.jsonl").stat().st_size for view in found)
        start = time.perf_counter()
        made = build(found, Path(scratch) / "report")
        seconds = time.perf_counter() - start
        bare = build(found, Path(scratch) / "bare", prompts=False)
        print(f"Report: {made.runs} runs of {made.tasks} tasks, {made.transcripts} transcripts, {log / 1e6:.0f} MB of event logs")
        print(
            f"  written in {seconds:.1f} s: {made.bytes / 1e6:.1f} MB with all prompts (target: less than {LARGEST / 1e6:.0f} MB)"
        )
        print(f"  without prompts: {bare.bytes / 1e6:.1f} MB")
        if problems := provision.problems(webarena=False):
            print(f"  opening: not measured. {problems[0].what} ({problems[0].fix})")
            return
        os.environ.update(provision.worker_env())
        from playwright.sync_api import sync_playwright

        print(f"  opened in Chromium (median of {OPENED}, wall s; target: less than {SLOWEST:g} s)")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch()
            for name, address in views(made.path).items():
                times = [opening(browser, f"{made.path.as_uri()}{address}", slower) for slower in (1, PHONE)]
                print(f"    {name:10} {times[0]:5.2f}   at a {PHONE}th of the speed, 390 pixels wide: {times[1]:5.2f}")
            browser.close()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 134)
