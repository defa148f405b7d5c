"""What a figure is: a table's rows and columns, and how they are drawn. A definition is a YAML of conf/figure/."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from harness.errors import ConfigError
from harness.registry import did_you_mean
from harness.report.definition import define, read_yaml

KINDS = ("bars", "scatter", "curves")


@dataclass
class FigureSpec:
    """One figure of the rows of `table`.

    kind: `bars` (a group of bars a column, a bar a row), `scatter` (column `x` against column `y`, a mark a row) or `curves`
    (score along the stream, a line a row, measured only). `columns` are labels of the table's columns (empty: all); `mean`
    draws their unweighted mean instead, with a group of bars for each block of rows (SEPM-R41). Rows that combine others are
    not drawn. `digits` prints the values at the bars.
    """

    title: str = ""
    table: str = ""
    kind: str = "bars"
    columns: list[str] = field(default_factory=list)
    mean: bool = False
    x: str = ""
    y: str = ""
    xlabel: str = ""
    ylabel: str = ""
    digits: bool = False
    notes: list[str] = field(default_factory=list)


def figures_dir() -> Path:
    """conf/figure, in a checkout or in an installed wheel."""
    from harness.compose import conf_dir

    return conf_dir() / "figure"


def names() -> list[str]:
    """The figures that can be drawn by name."""
    return sorted(path.stem for path in figures_dir().glob("*.yaml"))


def define_figure(figure: str) -> FigureSpec:
    """The definition of `figure`: a name of conf/figure/, or the path of a YAML. Raises ConfigError for anything wrong."""
    path = Path(figure) if figure.endswith(".yaml") else figures_dir() / f"{figure}.yaml"
    if not path.is_file():
        raise ConfigError(f"Unknown figure {figure!r}.", did_you_mean(figure, names()))
    spec = read_yaml(path, FigureSpec, "figure")
    if spec.kind not in KINDS:
        raise ConfigError(f"figure {path.stem}: kind is {spec.kind!r}.", did_you_mean(spec.kind, list(KINDS)))
    labels = [column.label for column in define(spec.table).columns]
    wanted = [*spec.columns, *([spec.x, spec.y] if spec.kind == "scatter" else [])]
    for label in wanted:
        if label not in labels:
            raise ConfigError(f"figure {path.stem}: table {spec.table} has no column {label!r}.", did_you_mean(label, labels))
    return spec
