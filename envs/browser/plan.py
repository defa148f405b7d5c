"""What goes over the pipe between a run and its browser worker, as both sides see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

# of whom a failed request speaks: the task's own setup (login, start page), the browser, or the worker itself
FailureKind = Literal["setup", "browser", "worker"]


@dataclass(frozen=True)
class TaskPlan:
    """One task for the worker.

    `entry` is "module:Class" of a BrowserGym task, `kwargs` what it is constructed with besides the seed. `subsets` names the
    action set's subsets. `sites` are the hosts (`host:port`) whose failing pages are reported in `Page.site_errors`. `judge` says
    that the task's evaluator may call a model, which `Browser.complete` then answers; before there is an answer to judge it is
    told no without a call, unless `ask_before_answer`. `coordinates` writes the middle of every element into the tree. `slow_mo`
    (ms) None: the task's own. `context` goes to Playwright's `new_context` (record_har_path, …).
    """

    entry: str
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    subsets: Sequence[str] = ("webarena",)
    retry_with_force: bool = True
    slow_mo: int | None = 0
    observation_delay: float = 0.5
    sites: Sequence[str] = ()
    judge: bool = False
    ask_before_answer: bool = False
    coordinates: bool = False
    context: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Page:
    """What the agents may see after a request, and what came of it.

    `tree` is the accessibility tree as text; `tabs` are (title, url) in order; `error` is BrowserGym's word on the last action;
    `dialogs` are (type, text) of alerts and questions, all of them dismissed; `downloads` are file names. `answered` says that a
    message to the user, or a report that the task cannot be done, stands last in the chat. `site_errors` are (url, what) of
    pages of `TaskPlan.sites` that failed; `evaluator_error` says that the evaluator itself failed at this page.
    """

    tree: str
    url: str
    tabs: tuple[tuple[str, str], ...] = ()
    active: int = 0
    goal: str = ""
    error: str = ""
    reward: float = 0.0
    done: bool = False
    answered: bool = False
    dialogs: tuple[tuple[str, str], ...] = ()
    downloads: tuple[str, ...] = ()
    site_errors: tuple[tuple[str, str], ...] = ()
    evaluator_error: str = ""
    task_error: str = ""

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Page:
        """The page in a worker's answer: lists become tuples."""
        return cls(**{key: _frozen(value) for key, value in values.items()})


def _frozen(value: Any) -> Any:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value


@dataclass(frozen=True)
class Question:
    """A completion that the task's evaluator asks for: the messages as it wrote them, and the model that it names."""

    messages: tuple[Mapping[str, str], ...]
    model: str
    temperature: float | None = None
    max_tokens: int | None = None


Complete = Callable[[Question], str]
