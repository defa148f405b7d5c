"""The process that plays the apps inside the sandbox: a line of JSON in, a line of JSON out, until its input ends.

Request: {"app": "excel", "action": "read_file", "arguments": {"file_path": "/testbed/data/table.xlsx"}}
Answer:  {"observation": "...", "ok": true}        ok is false where the action was refused or failed; the text says why

Start it with `apps.command()` through `Sandbox.channel`, after mounting `apps.mounts()` and a writable workspace, and speak with
`Channel.ask(json.dumps(request), timeout=10)`. There is no time limit in here: on ChannelTimeout the channel has killed the
process and its children; open a new one and go on. Between requests nothing is kept but the current folder (`cd`), which is the
workspace again after a new start; files are all that counts. A request that is no such JSON is answered too (ok false), so that
ChannelClosed means that the process was killed, or at once (code 1) that its Python lacks the libraries that the text names.

What libraries print never reaches the channel, and programs that the apps start inherit none of it.
"""

import json
import os
import sys
import types
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path


def _package() -> str:
    """Make this folder importable as a package of its own, wherever it lies, without its parent's `__init__`."""
    here = Path(__file__).resolve().parent
    # modules in here must not stand in for the library's; the libraries that come along must not stand in for the image's
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != here]
    libraries = here.parent / "lib"
    if libraries.is_dir():
        sys.path.append(str(libraries))
        # for the Python that a model starts in the shell
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(libraries)]))
    parent = types.ModuleType("officebench")
    parent.__path__ = [str(here.parent)]
    sys.modules["officebench"] = parent
    return "officebench.apps"


def _take_streams() -> tuple[int, int]:
    """Descriptors of requests and answers; what else is read or written goes nowhere.

    That includes complaints: nobody reads them while the process lives, and a library with many would wait for a full pipe.
    """
    # copies are not inheritable
    requests, answers = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    os.close(nothing)
    return requests, answers


def main(root: str) -> None:
    package = _package()
    apps = import_module(package)
    if missing := [name for name in (*apps.LIBRARIES, *apps.COMPILED) if find_spec(name) is None]:
        sys.exit(f"The sandbox's Python ({sys.executable}) lacks {', '.join(missing)}: pip install 'memarena[office]'.")
    perform = import_module(f"{package}.dispatch").perform
    space = import_module(f"{package}.workspace").Workspace(Path(root).resolve())
    os.chdir(root)
    requests, answers = _take_streams()
    with os.fdopen(requests, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            try:
                request = json.loads(line)
                app, action, arguments = str(request["app"]), str(request["action"]), dict(request["arguments"])
            except (ValueError, KeyError, TypeError, RecursionError):
                observation, ok = "The request is not of the form {app, action, arguments}.", False
            else:
                observation, ok = perform(space, app, action, arguments)
            answer = json.dumps({"observation": observation, "ok": ok}, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
            while answer:
                answer = answer[os.write(answers, answer) :]


if __name__ == "__main__":
    main(sys.argv[1])
