"""OfficeBench's apps: what they offer (`catalogue`), and the process that plays them inside the sandbox (`server`).

The package stands alone: it is mounted read-only into the sandbox and run there by the image's Python, together with the pure
Python libraries of the host, so that both sides read a file with the same code. The host itself uses `catalogue` and this module.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

WORKSPACE = "/testbed"
HOME = "/opt/officebench"
# what the apps and readers import, with what these import
LIBRARIES = ("docx", "openpyxl", "et_xmlfile", "icalendar", "dateutil", "six", "tzdata", "typing_extensions", "pypdf")
COMPILED = ("lxml", "PIL")  # for one interpreter, so that the image has its own
# Debian's LibreOffice keeps its registry outside of /usr, and does not start without it
_OFFICE_SETTINGS = Path("/etc/libreoffice")


def mounts(sandbox: str) -> tuple[tuple[Path, str], ...]:
    """(source on the host, target in the sandbox) of what the server needs in a sandbox of this kind, read-only.

    `process` needs nothing: it sees the host. Raises ModuleNotFoundError, which names the library, where the extra `office` is
    not installed.
    """
    if sandbox == "process":
        return ()
    here = Path(__file__).resolve().parent
    found = [(here, f"{HOME}/apps"), (here.parent / "readers.py", f"{HOME}/readers.py")]
    for name in LIBRARIES:
        spec = find_spec(name)
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        origin = Path(spec.origin)
        source = origin.parent if spec.submodule_search_locations else origin
        found.append((source, f"{HOME}/lib/{source.name}"))
    if sandbox == "bubblewrap" and _OFFICE_SETTINGS.is_dir():
        found.append((_OFFICE_SETTINGS, str(_OFFICE_SETTINGS)))
    return tuple(found)


def command(sandbox: str, workspace: str = WORKSPACE) -> tuple[str, ...]:
    """The server's command line; `workspace` is where the sandbox sees the workspace (its own path in the kind `process`)."""
    server = str(Path(__file__).resolve().parent / "server.py") if sandbox == "process" else f"{HOME}/apps/server.py"
    # -I: what a task leaves among the scratch space's own Python modules is not loaded by the next server
    return ("python3", "-I", "-u", server, workspace)
