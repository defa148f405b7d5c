"""What a table is: rows and columns that select runs by the labels of their manifests, and numbers of a paper by CSV column.

A definition is a YAML of conf/table/ (docs/reports.md); the dataclasses here are its schema. No name of a host, method or
environment stands in code.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from harness.errors import ConfigError
from harness.registry import did_you_mean
from harness.report.measure import LABELS, Run
from harness.report.reported import Reported, load

Spec = TypeVar("Spec")
RUN_KEYS = (*LABELS, "models_label", "actor_model", "experiment")
REPORTED_KEYS = ("paper", "source", "host", "method", "variant", "model", "env", "split")


@dataclass
class ColumnSpec:
    """One value column. `select` holds for runs and for reported numbers, `measured` and `reported` are added for one side.

    `metric` is the CSV's metric; `measure` is what is taken from a run: score (percent), tokens (total), or
    `metric:<name>` for the mean of a metric that the environment records. `change` says how rows with a baseline are
    compared: points or percent; `tokens` adds the tokens of the same runs. `bold` prints the highest of a block bold
    on a page: not where less is better.
    """

    label: str = ""
    select: dict[str, Any] = field(default_factory=dict)
    measured: dict[str, Any] = field(default_factory=dict)
    reported: dict[str, Any] = field(default_factory=dict)
    metric: str = "score"
    measure: str = "score"
    change: str = "points"
    tokens: bool = False
    bold: bool = True


@dataclass
class RowSpec:
    """One row. `baseline` is the id of the row it is compared with. `combine` makes it a sum of other rows: id → factor.

    `rest` takes the runs that match its selection and no other row.
    """

    id: str = ""
    label: str = ""
    group: str = ""
    select: dict[str, Any] = field(default_factory=dict)
    measured: dict[str, Any] = field(default_factory=dict)
    reported: dict[str, Any] = field(default_factory=dict)
    baseline: str | None = None
    combine: dict[str, float] = field(default_factory=dict)
    rest: bool = False


@dataclass
class TableSpec:
    """A table. `head` names the group column (empty: none) and the row column; `parts` are rows of the CSVs that only
    `combine` uses and that are not printed; `notes` are printed as they are.
    """

    title: str = ""
    head: list[str] = field(default_factory=lambda: ["", "Method"])
    reported: list[str] = field(default_factory=list)
    columns: list[ColumnSpec] = field(default_factory=list)
    parts: list[RowSpec] = field(default_factory=list)
    rows: list[RowSpec] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def numbers(self) -> tuple[Reported, ...]:
        return tuple(number for name in self.reported for number in load(name))

    def row(self, name: str) -> RowSpec:
        return next(row for row in (*self.rows, *self.parts) if row.id == name)


def tables_dir() -> Path:
    """conf/table, in a checkout or in an installed wheel."""
    from harness.compose import conf_dir

    return conf_dir() / "table"


def names() -> list[str]:
    """The tables that can be built by name."""
    return sorted(path.stem for path in tables_dir().glob("*.yaml"))


def define(table: str) -> TableSpec:
    """The definition of `table`: a name of conf/table/, or the path of a YAML. Raises ConfigError for anything wrong in it."""
    path = Path(table) if table.endswith(".yaml") else tables_dir() / f"{table}.yaml"
    if not path.is_file():
        raise ConfigError(f"Unknown table {table!r}.", did_you_mean(table, names()))
    spec = read_yaml(path, TableSpec, "table")
    _check(spec, path.stem)
    return spec


def read_yaml(path: Path, schema: type[Spec], kind: str) -> Spec:
    """The YAML at `path` as the dataclass `schema`; `kind` names it in errors. Raises ConfigError."""
    from omegaconf import OmegaConf
    from yaml import YAMLError  # type: ignore[import-untyped]

    from harness.config import validate

    try:
        values = OmegaConf.to_container(OmegaConf.load(path), resolve=True)
    except (YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is no YAML: {' '.join(str(error).split())}.") from error
    if not isinstance(values, dict):
        raise ConfigError(f"{path} holds no {kind}.", "See docs/reports.md.")
    return validate(schema, {str(key): value for key, value in values.items()}, f"{kind} {path.stem}")


def _check(spec: TableSpec, name: str) -> None:
    """Raise ConfigError for names that point nowhere."""
    rows = [*spec.rows, *spec.parts]
    ids = [row.id for row in rows if row.id]
    if len(spec.head) != 2:
        raise ConfigError(f"table {name}: head has {len(spec.head)} entries.", "Name the group column (or '') and the row's.")
    if len(set(ids)) != len(ids):
        raise ConfigError(f"table {name}: two rows have the same id.")
    for row in rows:
        for wanted in [*([row.baseline] if row.baseline else []), *row.combine]:
            if wanted not in ids:
                raise ConfigError(f"table {name}: row {row.label!r} names the unknown row {wanted!r}.", did_you_mean(wanted, ids))
    parts: list[RowSpec | ColumnSpec] = [*rows, *spec.columns]
    for part in parts:
        _check_keys({**part.select, **part.measured}, RUN_KEYS, name, dotted=True)
        _check_keys({**part.select, **part.reported}, REPORTED_KEYS, name, dotted=False)
    for column in spec.columns:
        if column.change not in ("points", "percent"):
            raise ConfigError(f"table {name}: change is {column.change!r}.", "Use points or percent.")


def _check_keys(select: Mapping[str, Any], known: tuple[str, ...], name: str, dotted: bool) -> None:
    for key in select:
        if key not in known and not (dotted and "." in key):
            raise ConfigError(f"table {name}: nothing can be selected by {key!r}.", did_you_mean(key, list(known)))


# --- selection --------------------------------------------------------------------------------------------------------
def _fits(value: Any, wanted: Any) -> bool:
    """Equal; for a list: any of it; for a text with `*`: a pattern, upper and lower case alike."""
    if isinstance(wanted, list):
        return any(_fits(value, one) for one in wanted)
    if isinstance(wanted, str) and "*" in wanted and isinstance(value, str):
        return fnmatch.fnmatchcase(value.lower(), wanted.lower())
    return bool(value == wanted)


def matches(run: Run, select: Mapping[str, Any]) -> bool:
    """Whether `run` has the labels (or, for dotted keys, the values in its manifest) that `select` names.

    `env` is met by the name of the YAML or of the environment itself, so that variants of a benchmark's configuration
    stand in its column.
    """
    for key, wanted in select.items():
        found = [run.at(key)] if "." in key else [run.labels[key], *([run.at("cell.env.name")] if key == "env" else [])]
        if not any(_fits(value, wanted) for value in found):
            return False
    return True


def run_selection(row: RowSpec, column: ColumnSpec) -> dict[str, Any]:
    return {**row.select, **column.select, **row.measured, **column.measured}


def find_reported(numbers: Iterable[Reported], row: RowSpec, column: ColumnSpec, metric: str) -> Reported | None:
    """The paper's number of a cell; None where it has none. Raises ConfigError where the definition fits several."""
    select = {**row.select, **column.select, **row.reported, **column.reported}
    found = [
        number
        for number in numbers
        if number.metric == metric and all(_fits(getattr(number, key), wanted) for key, wanted in select.items())
    ]
    if len(found) > 1:
        where = f"row {row.label!r}, column {column.label!r}"
        raise ConfigError(f"{len(found)} reported numbers fit {where}.", "Select more narrowly under `reported`.")
    return found[0] if found else None


def select_columns(spec: TableSpec, env: str | None) -> list[ColumnSpec]:
    """The columns for `env` (None: all). Raises ConfigError where no column is about it."""
    if env is None:
        return spec.columns
    about = {str(name): None for column in spec.columns if (name := {**column.select, **column.measured}.get("env"))}
    kept = [column for column in spec.columns if {**column.select, **column.measured}.get("env") == env]
    if not kept:
        raise ConfigError(f"The table has no column for {env!r}.", did_you_mean(env, list(about)) if about else "")
    return kept
