"""Runs inside the sandbox: keeps a Python namespace, executes one block a line of JSON, answers with one line of JSON.

Standard library only; its source is handed to the sandbox's interpreter.
"""

import ast
import contextlib
import io
import json
import os
import sys
import traceback


def main() -> None:
    """Requests: {"code": text}; answers: {"output": text, "error": text or null}. What a cell ends with is shown."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    answers = sys.stdout
    # a copy: a cell that calls exit() or input() may close sys.stdin
    for line in os.fdopen(os.dup(0)):
        code = json.loads(line)["code"]
        output, error = io.StringIO(), None
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            try:
                tree = ast.parse(code, "<cell>")
                last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
                exec(compile(tree, "<cell>", "exec"), namespace)
                if isinstance(last, ast.Expr):
                    value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), namespace)
                    if value is not None:
                        print(repr(value))
            except BaseException as problem:
                error = "".join(traceback.format_exception_only(problem)).strip()
                shown = [frame for frame in traceback.extract_tb(problem.__traceback__) if frame.filename == "<cell>"]
                if shown:
                    error = f"line {shown[-1].lineno}: {error}"
        answers.write(json.dumps({"output": output.getvalue(), "error": error}) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
