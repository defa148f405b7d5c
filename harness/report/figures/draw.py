"""Draws a figure's data with matplotlib: for print first, so every series has a colour, a grey and a pattern or marker."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import SetupError
from harness.report.figures.data import REPORTED, FigureData, Mark
from harness.report.text import NOTHING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("pdf", "png", "svg")
# Okabe and Ito's colours (2008), which all kinds of colour vision tell apart, ordered so that neighbours differ in grey, too.
COLOURS = ("#000000", "#E69F00", "#56B4E9", "#CC79A7", "#009E73", "#F0E442", "#0072B2", "#D55E00")
# The first is hollow: the row without added memory.
FILLS = ("#FFFFFF", *COLOURS[1:])
HATCHES = ("", "////", "....", "xxxx", "", "\\\\\\\\", "oo", "++")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1)), (0, (3, 1)), (0, (1, 1)), (0, (8, 2)))
# The height of a panel that only says that there is nothing, in heights of one that shows something.
_EMPTY = 0.3
_LEGEND = 130  # characters of a legend's line, its keys counted as nine each
INCH = 7.0  # the width of a page's text in the usual two-column layouts


def style() -> dict[Any, Any]:
    """matplotlib's settings for all figures."""
    return {
        "font.size": 8,
        "axes.titlesize": 8,
        "axes.labelsize": 8,
        "legend.fontsize": 7.5,
        "xtick.labelsize": 7.5,
        "ytick.labelsize": 7.5,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "axes.linewidth": 0.6,
        "hatch.linewidth": 0.5,
        "pdf.fonttype": 42,  # fonts as outlines that can be searched and edited (publishers refuse type 3)
        "svg.fonttype": "none",
        "svg.hashsalt": "memarena",  # the same figure is the same file
        "figure.constrained_layout.use": True,
    }


def save(data: FigureData, path: Path) -> Path:
    """Draw `data` into `path`, whose suffix names the format (pdf, png or svg). The same data give the same file.

    Raises SetupError without matplotlib.
    """
    try:
        from matplotlib import rc_context
        from matplotlib.backends.backend_agg import FigureCanvasAgg
    except ImportError as error:
        raise SetupError(f"Figures need matplotlib ({error}).", "pip install 'memarena[paper]'") from error
    kind = path.suffix.lstrip(".")
    path.parent.mkdir(parents=True, exist_ok=True)
    with rc_context(style()):
        figure = draw(data)
        FigureCanvasAgg(figure)  # a canvas of its own: nothing is shown, and no global figure is made
        stamps: dict[str, Any] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {"Software": None}}
        figure.savefig(path, format=kind, dpi=200, metadata=stamps.get(kind))
    return path


def draw(data: FigureData) -> Figure:
    """The figure of `data`; call it within `rc_context(style())`."""
    from matplotlib.figure import Figure

    axes_of = {"bars": _bar_axes, "scatter": _scatter_axes, "curves": _curve_axes}
    places = _places(data)
    columns, rows = _grid(len(places), data)
    heights = [1.0 if panel else _EMPTY for panel, _ in places[::columns]] if columns == 1 else [1.0] * rows
    figure = Figure(figsize=(INCH, 2.5 * sum(heights) + 0.4))
    shared = data.spec.kind != "scatter"
    axes = figure.subplots(rows, columns, squeeze=False, sharey=shared, height_ratios=heights)
    flat = [axis for line in axes for axis in line]
    for axis in flat[len(places) :]:
        axis.set_visible(False)
    for number, (axis, (panel, category)) in enumerate(zip(flat, places, strict=False)):
        marks = [mark for mark in data.of(panel) if category is None or mark.category == category]
        axis.set_title(_heading(panel, category, marks), loc="left")
        if marks:
            axes_of[data.spec.kind](axis, data, marks)
            axis.set_xlabel(data.spec.xlabel)
            axis.set_ylabel(data.spec.ylabel if number % columns == 0 or not shared else "")
        else:
            _say_nothing(axis, data)
    handles = _handles(data)
    if handles:
        longest = max(map(len, data.series))
        figure.legend(handles=handles, loc="outside lower center", ncols=max(1, _LEGEND // (longest + 9)), frameon=False)
    return figure


def _places(data: FigureData) -> list[tuple[str, str | None]]:
    """Panels in order; of curves one a panel and category. Without a measurement a panel that says so."""
    if data.spec.kind == "curves":
        found = list(dict.fromkeys((mark.panel, mark.category) for mark in data.marks))
        return [*found] if found else [("", None)]
    empty: list[tuple[str, str | None]] = [("", None)] if data.missing else []
    return [*((panel, None) for panel in data.panels), *empty]


def _grid(count: int, data: FigureData) -> tuple[int, int]:
    """Columns and rows: panels with many groups below each other, others side by side."""
    if data.spec.kind == "bars" and len(data.categories) > 4:
        return 1, count
    columns = min(count, 3 if data.spec.kind == "curves" else 2)
    return columns, math.ceil(count / columns)


def _heading(panel: str, category: str | None, marks: Sequence[Mark]) -> str:
    if panel == REPORTED:
        return "Reported"
    if not panel:
        return f"Measured: {NOTHING}"
    departs = " ≠" if any(mark.comparable is False for mark in marks) else ""
    return "\n".join(filter(None, (category, f"Measured: {panel}{departs}")))


def _say_nothing(axis: Axes, data: FigureData) -> None:
    import textwrap

    axis.text(0.5, 0.5, textwrap.fill(data.missing, 34), ha="center", va="center", transform=axis.transAxes, color="#444444")
    axis.set_xticks([])
    axis.spines[:].set_visible(False)
    axis.tick_params(axis="y", left=False, labelleft=False)


def _number(data: FigureData, mark: Mark) -> int:
    return data.series.index(mark.series) % len(COLOURS)


def _error(mark: Mark) -> list[list[float]] | None:
    if mark.low is None or mark.high is None:
        return None
    return [[max(0.0, mark.value - mark.low)], [max(0.0, mark.high - mark.value)]]


def _bar_axes(axis: Axes, data: FigureData, marks: Sequence[Mark]) -> None:
    """Groups by category, a bar a series, whiskers for intervals."""
    wide = 0.84 / len(data.series)
    for mark in marks:
        number = _number(data, mark)
        x = data.categories.index(mark.category) + (data.series.index(mark.series) - (len(data.series) - 1) / 2) * wide
        axis.bar(x, mark.value, wide * 0.94, color=FILLS[number], hatch=HATCHES[number], edgecolor="#222222", linewidth=0.6)
        error = _error(mark)
        if error:
            axis.errorbar(x, mark.value, yerr=error, fmt="none", ecolor="#222222", elinewidth=0.8, capsize=1.8, capthick=0.8)
        if data.spec.digits:
            top = max(mark.value, mark.high or 0.0)
            axis.annotate(mark.shown, (x, top), xytext=(0, 2), textcoords="offset points", ha="center", va="bottom", fontsize=5.5)
    for place, category in enumerate(data.categories):
        if not any(mark.category == category for mark in marks):
            axis.annotate(NOTHING, (place, 0), xytext=(0, 3), textcoords="offset points", ha="center")
    axis.set_xticks(range(len(data.categories)), labels=list(data.categories))
    axis.set_xlim(-0.55, len(data.categories) - 0.45)
    _percent_scale(axis, data, marks)


def _percent_scale(axis: Axes, data: FigureData, marks: Sequence[Mark]) -> None:
    """From 0, and to 100 where scores come near it; whiskers never leave the panel."""
    top = max(max(mark.value, mark.high or 0.0) for mark in data.marks)
    axis.set_ylim(0, 105 if 85 < top <= 100 else max(1.0, top * 1.12))
    axis.grid(axis="y", color="#DDDDDD", linewidth=0.5)


def _scatter_axes(axis: Axes, data: FigureData, marks: Sequence[Mark]) -> None:
    """One marker a series; the whiskers are those of the score."""
    xs = [mark.x or 0.0 for mark in marks]
    spread = max(xs) - min(xs) or max(xs) or 1.0
    for mark in marks:
        number = _number(data, mark)
        error = _error(mark)
        if error:
            axis.errorbar(mark.x or 0.0, mark.value, yerr=error, fmt="none", ecolor="#777777", elinewidth=0.8, capsize=2)
        face = FILLS[number]
        axis.plot(mark.x or 0.0, mark.value, MARKERS[number], color=face, markeredgecolor="#222222", markersize=7, zorder=3)
    axis.set_xlim(max(0.0, min(xs) - 0.2 * spread), max(xs) + 0.2 * spread)
    low = min(mark.low if mark.low is not None else mark.value for mark in marks)
    high = max(mark.high if mark.high is not None else mark.value for mark in marks)
    margin = max(3.0, 0.1 * (high - low))
    axis.set_ylim(low - margin, high + margin)
    axis.locator_params(axis="x", nbins=5)
    axis.grid(color="#DDDDDD", linewidth=0.5)


def _curve_axes(axis: Axes, data: FigureData, marks: Sequence[Mark]) -> None:
    """A line a series over stream position; the marks of one block stand a little apart so that whiskers do not cover."""
    longest = max(mark.x or 0.0 for mark in marks)
    for series in data.series:
        held = [mark for mark in marks if mark.series == series]
        if not held:
            continue
        number = _number(data, held[0])
        shift = (data.series.index(series) - (len(data.series) - 1) / 2) * longest * 0.012
        xs = [(mark.x or 0.0) + shift for mark in held]
        ys = [mark.value for mark in held]
        for x, mark in zip(xs, held, strict=True):
            error = _error(mark)
            if error:
                axis.errorbar(
                    x, mark.value, yerr=error, fmt="none", ecolor=COLOURS[number], elinewidth=0.6, capsize=1.2, alpha=0.6
                )
        axis.plot(
            xs,
            ys,
            linestyle=DASHES[number],
            color=COLOURS[number],
            marker=MARKERS[number],
            markersize=4,
            markeredgecolor="#222222",
            markeredgewidth=0.4,
            markerfacecolor=FILLS[number],
            linewidth=1.1,
        )
    axis.set_xlim(0, longest * 1.12)
    axis.locator_params(axis="x", nbins=6, integer=True)
    _percent_scale(axis, data, marks)


def _handles(data: FigureData) -> list[Any]:
    """The legend's keys, as the series are drawn."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    edge = "#222222"
    found: list[Any] = []
    for index, series in enumerate(data.series):
        i = index % len(COLOURS)
        if data.spec.kind == "bars":
            found.append(Patch(facecolor=FILLS[i], hatch=HATCHES[i], edgecolor=edge, linewidth=0.6, label=series))
            continue
        look: dict[str, Any] = {"marker": MARKERS[i], "markerfacecolor": FILLS[i], "markeredgecolor": edge, "label": series}
        if data.spec.kind == "curves":
            look |= {"linestyle": DASHES[i], "color": COLOURS[i], "markersize": 4}
        else:
            look |= {"linestyle": "none", "markersize": 6}
        found.append(Line2D([], [], **look))
    return found
