"""One attempt at a browser task: pages as text within a budget, actions, and the benchmark's own reward."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace

from envs.browser.actions import normalise
from envs.browser.client import Browser
from envs.browser.plan import Page
from harness.contracts import TIER_ENVIRONMENT, ActionMode, Evidence, Outcome, StepResult, TaskStatus
from harness.models.tokens import CHARACTERS_PER_TOKEN, estimate_text

# A solution as a script: it is given a page, yields an action, is given the next page, and so on.
Script = Callable[[Page], Generator[str, Page, None]]

_LONGEST_ERROR, _LONGEST_DIALOG = 600, 300  # characters

RULES = """You work in a web browser through single actions. After every action you see the open tabs and the page as an
accessibility tree: one element a line, its number in square brackets. A page that is too long is cut; the last line then says so.
In each turn write exactly one action, as a function call with literal arguments, last in your answer:
```
click('12')
```
Elements are named by their number in quotes, as shown on the page as it is now; numbers may change from page to page.
Dialogs of a page are dismissed, and their text is shown."""


def view(page: Page, budget: int | None) -> tuple[str, int]:
    """What the agents see of `page`, and how many tokens of its tree were cut to keep within `budget` (estimated; None: all)."""
    lines = []
    if len(page.tabs) > 1:
        shown = (f"{i}{' (current)' if i == page.active else ''}: {title} <{url}>" for i, (title, url) in enumerate(page.tabs))
        lines.append("Tabs: " + "; ".join(shown))
    lines.append(f"URL: {page.url}")
    lines += [f"Dialog ({kind}), dismissed: {text[:_LONGEST_DIALOG]}" for kind, text in page.dialogs]
    lines += [f"Downloaded: {name}" for name in page.downloads]
    if page.error:
        lines.append(f"Error of the last action: {' '.join(page.error.split())[:_LONGEST_ERROR]}")
    tree, cut = cut_to(page.tree.rstrip(), budget)
    lines.append(tree or "(an empty page)")
    if cut:
        lines.append(f"[cut: {cut} of about {estimate_text(page.tree)} tokens of this page are not shown]")
    return "\n".join(lines), cut


def cut_to(text: str, budget: int | None) -> tuple[str, int]:
    """`text` up to the last whole line within `budget` tokens (estimated), and the number of tokens that were cut."""
    total = estimate_text(text)
    if budget is None or total <= budget:
        return text, 0
    kept = text[: budget * CHARACTERS_PER_TOKEN]
    kept = kept[: kept.rindex("\n")] if "\n" in kept else kept
    return kept, total - estimate_text(kept)


class BrowserSession:
    """A task in play. The reward is the benchmark's; an action that could not be carried out gets −1 and its error.

    `names` are the known actions and `description` BrowserGym's text on them; `budget` is `env.observation_tokens`; `oracle` is a
    script that solves the task, where there is one. `facts` describe the task for retrieval. `aliases` maps addresses of this
    machine (a folder, a port) to what is shown in their place, so that a prompt is the same on every machine.
    """

    action_mode: ActionMode = "block"
    noop_action = "noop()"
    few_shots: tuple[str, ...] = ()
    choices: tuple[str, ...] | None = None

    def __init__(
        self,
        browser: Browser,
        page: Page,
        *,
        names: Sequence[str],
        description: str,
        facts: frozenset[str],
        budget: int | None,
        oracle: Script | None = None,
        aliases: Mapping[str, str] | None = None,
    ) -> None:
        self._aliases = dict(aliases or {})
        self._browser, self._page, self._names, self._budget = browser, page, names, budget
        self._steps = self._refused = self._cuts = self._cut_tokens = self._dialogs = self._evaluator_errors = 0
        self._reward, self._done = 0.0, False
        self._oracle = oracle
        self._script: Generator[str, Page, None] | None = None
        self._proposed: str | None = None
        self.observation = f"Your task: {self._shown(page.goal)}\n{self._view(page)}"
        self.instructions = f"{RULES}\n\n{description.strip()}"
        self.facts = facts

    def _view(self, page: Page) -> str:
        text, cut = view(replace(page, tree=self._shown(page.tree)), self._budget)
        self._cuts, self._cut_tokens = self._cuts + bool(cut), self._cut_tokens + cut
        return self._shown(text)

    def _shown(self, text: str) -> str:
        for real, alias in self._aliases.items():
            text = text.replace(real, alias)
        return text

    def _real(self, action: str) -> str:
        for real, alias in self._aliases.items():
            action = action.replace(alias, real)
        return action

    def normalise(self, text: str) -> str:
        return normalise(text, self._names)

    def step(self, action: str) -> StepResult:
        """Carry out one action. Raises EnvironmentCrashed where browser or site fail, RuntimeError after the end."""
        if self._done:
            raise RuntimeError("The episode is over: no further step is possible.")
        page = self._browser.step(self._real(action))
        self.examine(page)
        self._advance(action, page)
        self._page, self._steps = page, self._steps + 1
        self._reward, self._done = page.reward, page.done
        self._refused += bool(page.error)
        self._dialogs += len(page.dialogs)
        self._evaluator_errors += bool(page.evaluator_error)
        at = (self._steps, 0)
        evidence = (Evidence(("page", "url"), self._shown(page.url), TIER_ENVIRONMENT, "browser", at),)
        error = self._shown(" ".join(page.error.split()))[:_LONGEST_ERROR] or None
        return StepResult(
            self._view(page),
            reward=-1.0 if error else page.reward,
            done=page.done,
            error=error,
            evidence=() if error else evidence,
        )

    def examine(self, page: Page) -> None:
        """For adapters: raise EnvironmentCrashed where `page` shows that not the agents but a site has failed."""

    def oracle_action(self) -> str | None:
        """The next action of the task's script for the page as it is; None after its end, and where there is no script."""
        if self._oracle is not None and self._script is None:
            self._script = self._oracle(self._page)
            self._proposed = self._proposal(None)
        return self._proposed

    def _advance(self, action: str, page: Page) -> None:
        """The script goes on when its action was carried out; after another one it proposes the same again."""
        if self._script is None or action != self._proposed:
            return
        self._proposed = self._proposal(page)

    def _proposal(self, page: Page | None) -> str | None:
        """None at the script's end, which also comes where the agents have gone astray and it does not find what it needs."""
        assert self._script is not None
        try:
            return next(self._script) if page is None else self._script.send(page)
        except (StopIteration, LookupError, ValueError, RuntimeError):
            return None

    def observe(self, keys: Sequence[tuple[str, str]]) -> tuple[Evidence, ...] | None:
        """None: looking again at a page is an action of the agents'."""
        return None

    @property
    def success(self) -> bool:
        return self._reward >= 1.0

    def outcome(self) -> Outcome:
        """The benchmark's word after the last step. A task that did not end by itself has no more than that."""
        score = min(1.0, max(0.0, self._reward))
        feedback = f"The task is {'' if self.success else 'not '}completed after {self._steps} steps."
        if self._refused:
            feedback += f" {self._refused} actions could not be carried out."
        if self._page.task_error:
            feedback += f" The benchmark ended the task: {self._page.task_error}."
        status: TaskStatus = "completed" if self.success else "failed" if self._done else "unresolved"
        return Outcome(score, self.success, status, feedback, self.metrics())

    def metrics(self) -> dict[str, float | int | str | None]:
        return {
            "steps": self._steps,
            "refused_actions": self._refused,
            "cut_observations": self._cuts,
            "cut_tokens": self._cut_tokens,
            "dialogs": self._dialogs,
            "evaluator_errors": self._evaluator_errors,
        }
