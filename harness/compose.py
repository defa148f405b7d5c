"""From the command line's overrides to composed configurations, by Hydra; its errors become one clear line each.

Nothing here is specific to a host, method or environment. Third parties add YAMLs by the entry-point group `memarena.conf`
(value: a package that holds host/, method/, env/ or models/ folders).
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.errors import ConfigError, MemArenaError
from harness.registry import did_you_mean

GROUPS = ("host", "method", "env", "models", "run")
# values, choices (group → name of the YAML), bases (group → what that YAML says by itself), experiment
Point = tuple[dict[str, Any], dict[str, str], dict[str, dict[str, Any]], str | None]


def conf_dir() -> Path:
    """The conf/ folder: beside the packages in a checkout, inside the harness package in a wheel."""
    here = Path(__file__).resolve().parent
    for candidate in (here.parent / "conf", here / "_conf"):
        if (candidate / "config.yaml").is_file():
            return candidate
    raise ConfigError(f"No conf/ folder beside {here}.", "Reinstall memarena.")


def _search_path() -> list[str]:
    packages = [point.value for point in importlib.metadata.entry_points(group="memarena.conf")]
    return [f"hydra.searchpath=[{','.join(f'pkg://{package}' for package in packages)}]"] if packages else []


def _open(overrides: Sequence[str]) -> list[str]:
    """Let a value that the YAML does not list be given without Hydra's `+`: the schema knows it, or names the nearest key."""
    return [f"++{word}" if re.match(rf"({'|'.join(GROUPS)})\.[^=]*=", word) else word for word in overrides]


def sweep(overrides: Sequence[str], multirun: bool, job: Callable[[Point, bool], None]) -> None:
    """Call `job(point, is_sweep)` once, or for each point of a sweep (`-m`, or an experiment whose hydra.mode is MULTIRUN)."""
    import hydra
    from hydra.core.hydra_config import HydraConfig

    errors: list[MemArenaError] = []

    def call(cfg: Any) -> None:
        node = HydraConfig.get()
        try:
            point = unpack(cfg, node)
        except MemArenaError as error:  # raised in here, Hydra would print lines of its own before ours
            errors.append(error)
            return
        job(point, str(node.mode).endswith("MULTIRUN"))

    # Hydra's own reporting prints a page and exits; with this it raises, and we print one line
    os.environ["HYDRA_FULL_ERROR"] = "1"
    decorated = hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name="config")(call)
    saved = sys.argv
    sys.argv = ["memarena run", *(["--multirun"] if multirun else []), *_search_path(), *_open(overrides)]
    try:
        with _clear_errors():
            decorated()
    finally:
        sys.argv = saved
    if errors:
        raise errors[0]


def compose_one(overrides: Sequence[str]) -> Point:
    """Compose a single configuration without running anything."""
    from hydra import compose, initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra

    GlobalHydra.instance().clear()
    with _clear_errors(), initialize_config_dir(str(conf_dir()), version_base="1.3"):
        cfg = compose("config", overrides=[*_search_path(), *_open(overrides)], return_hydra_config=True)
        return unpack(cfg, cfg.hydra)


def unpack(cfg: Any, hydra: Any) -> Point:
    """A composed configuration as plain data; `hydra` is the node of that name."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    chosen = {str(key): str(value) for key, value in hydra.runtime.choices.items() if value not in (None, "null")}
    plain = OmegaConf.masked_copy(cfg, [key for key in cfg if key != "hydra"])
    try:
        values = OmegaConf.to_container(plain, resolve=True)
    except OmegaConfBaseException as error:
        raise ConfigError(str(error).splitlines()[0]) from error
    assert isinstance(values, dict)
    choices = {group: chosen[group] for group in GROUPS if group in chosen}
    for group in GROUPS:
        if group not in choices:
            raise ConfigError(f"{group} is not set to one of its choices.", f"There are: {', '.join(_available(group))}.")
    experiment = chosen.get("experiment")
    return {str(k): v for k, v in values.items()}, choices, bases_of(choices), experiment


def bases_of(choices: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """What the chosen YAMLs say by themselves, by group, as far as it can be told."""
    return {group: base for group in GROUPS if group in choices and (base := _yaml(group, choices[group])) is not None}


def _yaml(group: str, name: str) -> dict[str, Any] | None:
    """The values of a YAML of ours; None for a third party's, whose deviations we cannot tell, and for the run's, which
    refers to other groups."""
    from omegaconf import OmegaConf

    path = conf_dir() / group / f"{name}.yaml"
    if group == "run" or not path.is_file():
        return None
    loaded = OmegaConf.to_container(OmegaConf.load(path), resolve=True)
    assert isinstance(loaded, dict)
    return {str(key): value for key, value in loaded.items() if key != "defaults"}


@contextmanager
def _clear_errors() -> Iterator[None]:
    """Turns Hydra's and OmegaConf's errors into ConfigError."""
    from hydra.errors import HydraException, MissingConfigException
    from omegaconf.errors import ConfigAttributeError, ConfigKeyError, OmegaConfBaseException

    try:
        yield
    except MissingConfigException as error:
        group, _, name = (error.missing_cfg_file or "").rpartition("/")
        options = list(error.options or []) or _available(group)
        raise ConfigError(f"Unknown {group or 'configuration'} {name!r}.", did_you_mean(name, options)) from error
    except (HydraException, OmegaConfBaseException) as error:
        if isinstance(error.__cause__, ConfigKeyError | ConfigAttributeError):
            raise _unknown_key(error.__cause__) from error
        raise ConfigError(" ".join(str(error).split()).rstrip(".") + ".") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        # Hydra itself stumbles over some overrides, such as a group set to null or to a list
        raise ConfigError(f"This configuration cannot be composed: {' '.join(str(error).split())}.") from error


def _available(group: str) -> list[str]:
    return sorted(path.stem for path in (conf_dir() / group).glob("*.yaml")) if group else []


def _unknown_key(error: Any) -> ConfigError:
    """An override of a key that does not exist, with the nearest key of the same group."""
    key = str(error.full_key or error.key)
    parent, _, last = key.rpartition(".")
    node = error.parent_node
    known = [str(name) for name in node] if node is not None and hasattr(node, "keys") else []
    if not parent:
        known = [*known, *(path.name for path in conf_dir().iterdir() if path.is_dir())]
        known = [name for name in known if name != "hydra"]
    return ConfigError(f"Unknown key {key}.", did_you_mean(last, sorted(set(known))) if known else "")
