"""What a step through the browser worker costs above BrowserGym's own step, both in this run and by turns.

`python -m tests.bench.browser [STEPS]`. Ours: session → pipe → worker → BrowserGym → pipe → text within its budget. Theirs: the
same environment class in this process, and the tree as text. Both look at the same MiniWoB++ page in the same kind of browser.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable

from envs.browser import provision

KIND, SEED, ACTION = "click-checkboxes-large", 3, "noop(0)"
WARM = 5  # steps of each that are not counted


def theirs() -> Callable[[], object]:
    """A step of BrowserGym alone."""
    import logging

    logging.disable(logging.WARNING)  # that slow_mo was changed
    from browsergym.core.action.highlevel import HighLevelActionSet
    from browsergym.core.env import BrowserEnv
    from browsergym.miniwob.all import ClickCheckboxesLargeTask
    from browsergym.utils.obs import flatten_axtree_to_str

    actions = HighLevelActionSet(subsets=["miniwob_all"], multiaction=False, strict=False, retry_with_force=True)
    env = BrowserEnv(ClickCheckboxesLargeTask, slow_mo=0, pre_observation_delay=0.0, action_mapping=actions.to_python_code)
    env.reset(seed=SEED)

    def step() -> object:
        observation = env.step(ACTION)[0]
        return flatten_axtree_to_str(
            observation["axtree_object"], extra_properties=observation["extra_element_properties"], with_center_coords=True
        )

    return step


def main(steps: int) -> None:
    problems = provision.problems(webarena=False)
    if problems:
        print(f"Browser: not measured. {problems[0].what} ({problems[0].fix})")
        return
    from envs.miniwob.adapter import MiniWob, MiniWobConfig

    made = MiniWob(MiniWobConfig(tasks=[KIND], observation_delay=0.0))
    start = time.perf_counter()
    with made.open(made.tasks()[0], SEED) as session:
        first = time.perf_counter() - start
        os.environ.update(provision.worker_env())
        kinds: dict[str, Callable[[], object]] = {
            "BrowserGym alone": theirs(),
            "through the worker": lambda: session.step(ACTION),
        }
        times: dict[str, list[float]] = {name: [] for name in kinds}
        for number in range(WARM + steps):
            for name, step in kinds.items():
                begin = time.perf_counter()
                step()
                if number >= WARM:
                    times[name].append(time.perf_counter() - begin)
    start = time.perf_counter()
    with made.open(made.tasks()[0], SEED):
        second = time.perf_counter() - start
    own, ours = (statistics.median(values) * 1000 for values in times.values())
    print(f"Browser: a step on a MiniWoB++ page (median of {steps}, wall ms)")
    for name, values in times.items():
        print(f"  {name:20} {statistics.median(values) * 1000:7.1f}")
    print(f"  difference {ours - own:+.1f} ms, ratio {ours / own:.2f} (target: less than 10 ms more)")
    print(f"  start of a task: {first:.2f} s with the worker's own start, {second:.2f} s in the running browser")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40)
