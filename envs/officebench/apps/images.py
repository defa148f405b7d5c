"""The ocr app: tesseract reads what pillow can open."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from .programs import reason, run
from .workspace import Refused, Workspace


def recognize_file(space: Workspace, arguments: Mapping[str, Any]) -> str:
    from PIL import Image

    path = space.existing(arguments, "file_path")
    content = io.BytesIO()
    try:
        with Image.open(path) as image:
            clear = "A" in image.getbands() or "transparency" in image.info
            flat = image.convert("RGBA" if clear else "RGB")
            # what is transparent is white, as on paper
            paper = Image.new("RGB", flat.size, "white")
            paper.paste(flat, mask=flat.getchannel("A") if clear else None)
            paper.save(content, format="PPM")
    except Exception as error:
        raise Refused(f"{space.shown(path)} cannot be read as an image ({type(error).__name__}).") from error
    done = run(["tesseract", "stdin", "stdout", "-l", "eng"], stdin=content.getvalue())
    if done.returncode != 0:
        raise Refused(f"The text in {space.shown(path)} cannot be recognised: {reason(done)}.")
    found = done.stdout.decode("utf-8", "replace").replace("\f", "").strip()
    return f"The text in {space.shown(path)}:\n{found}" if found else f"No text was recognised in {space.shown(path)}."
