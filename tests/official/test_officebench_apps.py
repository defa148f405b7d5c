"""Every app action on the real files of OfficeBench's testbeds, in the sandbox; skipped where files or sandbox are absent.

Files of equal content are tried once: 102 workbooks are 41, 68 images are 23.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from envs.officebench import apps, readers
from harness.errors import SetupError
from harness.sandbox.base import Channel, Image, Mount, Plan, Sandbox
from harness.sandbox.kinds import sandbox_kind

DATA = Path(os.environ.get("HARNESS_DATA") or Path(__file__).parents[3] / "shared" / "data") / "officebench" / "tasks"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"no OfficeBench in {DATA}")
IMAGE = Image("memarena/officebench:1", Path(apps.__file__).parents[1] / "image")
SECONDS = 60.0  # six times the official limit: the machine may be busy with other tests


def files(*suffixes: str) -> list[Path]:
    return sorted(path for path in DATA.glob("*/testbed/**/*") if path.suffix in suffixes and path.is_file())


def distinct(*suffixes: str) -> list[Path]:
    found = {hashlib.sha256(path.read_bytes()).digest(): path for path in reversed(files(*suffixes))}
    return sorted(found.values())


class Desk:
    """A workspace in a sandbox. `put` copies a real file into it, `act` performs an action that must work."""

    def __init__(self, sandbox: Sandbox, workspace: Path) -> None:
        self.workspace, self.kind = workspace, sandbox.kind
        self.channel: Channel = sandbox.channel(apps.command(sandbox.kind), workdir=apps.WORKSPACE)

    def put(self, source: Path, place: str) -> str:
        target = self.workspace / place
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        self.open_up()
        return f"{apps.WORKSPACE}/{place}"

    def open_up(self) -> None:
        """What either side has made, the other may change."""
        for path in [self.workspace, *self.workspace.rglob("*")]:
            if path.stat().st_uid == os.getuid():
                path.chmod(0o777 if path.is_dir() else 0o666)

    def act(self, name: str, **arguments: Any) -> str:
        app, _, action = name.partition(".")
        request = json.dumps({"app": app, "action": action, "arguments": arguments})
        answer = json.loads(self.channel.ask(request, timeout=SECONDS))
        assert answer["ok"], (name, arguments, answer["observation"])
        return str(answer["observation"])


@contextmanager
def desk_of(kind: str, folder: Path) -> Iterator[Desk]:
    made = sandbox_kind(kind)
    if problems := made.check(IMAGE):
        pytest.skip(f"no {kind} here: {problems[0].what}")
    if kind == "bubblewrap" and not all(shutil.which(program) for program in ("soffice", "tesseract", "pdftoppm")):
        pytest.skip("the apps' programs are not installed here")
    for parent in list(folder.parents)[:3]:
        parent.chmod(0o755)
    mounts = [Mount(folder, apps.WORKSPACE, writable=True)]
    mounts += [Mount(source, target) for source, target in apps.mounts(kind)]
    folder.chmod(0o777)
    try:
        sandbox = made.start(Plan(IMAGE, tuple(mounts), owner="tests"))
    except SetupError as error:
        pytest.skip(f"no image here: {error}")
    with sandbox:
        desk = Desk(sandbox, folder)
        yield desk
        desk.channel.close()


@pytest.fixture(scope="module", params=["docker", "bubblewrap"])
def desk(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with desk_of(request.param, tmp_path_factory.mktemp("bed")) as opened:
        yield opened


def test_the_testbeds_hold_the_known_files() -> None:
    counts = {suffix: len(files(suffix)) for suffix in (".xlsx", ".jpg", ".pdf", ".eml", ".ics", ".png", ".docx", ".txt")}
    assert counts == {".xlsx": 102, ".jpg": 50, ".pdf": 46, ".eml": 45, ".ics": 19, ".png": 18, ".docx": 11, ".txt": 2}


def test_every_workbook_reads_the_same_inside_and_on_the_host_and_takes_cells(desk: Desk) -> None:
    for path in distinct(".xlsx"):
        file = desk.put(path, "data/a table.xlsx")
        shown = desk.act("excel.read_file", file_path=file)
        assert shown == f"The active sheet of {file}:\n{readers.workbook_text(path)}".strip()
        desk.act("excel.set_cell", file_path=file, row_idx=300, column_idx=2, text="1,000")
        desk.act("excel.set_cell", file_path=file, row_idx=300, column_idx=3, text="12")
        desk.act("excel.delete_cell", file_path=file, row_idx=1, column_idx=1)
        written = readers.workbook_text(desk.workspace / "data/a table.xlsx")
        assert written.startswith("(1, 1): [Empty Cell]\t") and "(300, 2): 1,000\t(300, 3): 12\t" in written


def test_every_document_reads_the_same_inside_and_on_the_host_and_grows(desk: Desk) -> None:
    for path in distinct(".docx"):
        file = desk.put(path, "data/a letter.docx")
        if text := readers.document_text(path).strip():
            assert text in desk.act("word.read_file", file_path=file)
        desk.act("word.write_to_file", file_path=file, contents='It\'s "new", 1,000')
        assert readers.document_text(desk.workspace / "data/a letter.docx").endswith('\nIt\'s "new", 1,000')


def test_every_pdf_reads_the_same_inside_and_on_the_host(desk: Desk) -> None:
    silent = []
    for path in distinct(".pdf"):
        file = desk.put(path, "data/a b.pdf")
        shown = desk.act("pdf.read_file", pdf_file_path=file)
        if text := readers.pdf_text(path).strip():
            assert shown == text
        else:
            silent.append(path)
            assert "holds no text" in shown
    assert len(silent) == 1  # a scan


def test_every_pdf_becomes_an_image_and_a_document(desk: Desk) -> None:
    from PIL import Image as Picture

    for path in distinct(".pdf"):
        file = desk.put(path, "data/a b.pdf")
        desk.act("pdf.convert_to_image", pdf_file_path=file, image_file_path="data/page 1.png")
        with Picture.open(desk.workspace / "data/page 1.png") as image:
            assert min(image.size) > 100
        desk.act("pdf.convert_to_word", pdf_file_path=file, word_file_path="data/converted.docx")
        words = set(readers.document_text(desk.workspace / "data/converted.docx").split())
        wanted = [word for word in readers.pdf_text(path).split() if word.isascii() and word.isalpha()]
        # pypdf sometimes joins words that poppler keeps apart
        assert sum(word in words for word in wanted) >= 0.8 * len(wanted), path


def test_every_calendar_is_listed_and_changed(desk: Desk) -> None:
    new = {"user": "Some One", "summary": 'A/B, "C"', "time_start": "2030-01-01 09:00:00", "time_end": "2030-01-01 10:00:00"}
    for path in distinct(".ics"):
        desk.put(path, "calendar/Some One.ics")
        before = readers.calendar_text(path)
        desk.act("calendar.create_event", **new)
        listed = desk.act("calendar.list_events", username="Some One")
        assert before in listed and f"Summary: {new['summary']}\nStart Time: 2030-01-01 09:00:00\n" in listed
        desk.act("calendar.delete_event", user="Some One", summary=new["summary"])
        assert readers.calendar_text(desk.workspace / "calendar/Some One.ics") == before


def test_every_mailbox_is_listed_and_every_mail_read(desk: Desk) -> None:
    boxes = sorted({path.parent for path in files(".eml") if path.parent.name != "emails"})
    assert len(boxes) == 14
    for number, box in enumerate(boxes):
        mails = readers.mailbox_files(box)
        for path in mails:
            desk.put(path, f"emails/box{number}/{path.name}")
        listed = desk.act("email.list_emails", username=f"box{number}")
        assert listed.count("Email ID: ") == len(mails) and "cannot be read" not in listed
        for path in mails:
            assert readers.email_text(path).strip() in desk.act("email.read_email", username=f"box{number}", email_id=path.name)
        desk.act("email.send_email", sender=f"box{number}", recipient="Zoe", subject="a/b 1,000", content='It\'s "so".')
        assert desk.act("email.list_emails", username=f"box{number}").count("Email ID: ") == len(mails) + 1


def test_new_files_and_the_shell(desk: Desk) -> None:
    desk.act("word.create_new_file", file_path="/testbed/data/new one.docx")
    desk.act("excel.create_new_file", file_path="/testbed/data/new one.xlsx")
    assert desk.act("shell.command", command="ls /testbed/data | grep 'new one'") == "new one.docx\nnew one.xlsx"


@pytest.mark.slow
def test_text_is_recognised_in_every_image(desk: Desk) -> None:
    for path in distinct(".jpg", ".png"):
        file = desk.put(path, f"data/a scan{path.suffix}")
        shown = desk.act("ocr.recognize_file", file_path=file)
        assert len(shown.removeprefix(f"The text in {file}:\n").split()) >= 3, path


@pytest.mark.slow
def test_documents_and_workbooks_become_pdfs(desk: Desk) -> None:
    # a second and a half each: in docker every document and every fourth workbook
    sources = [*distinct(".docx"), *distinct(".xlsx")[::4]][:: 1 if desk.kind == "docker" else 6]
    for path in sources:
        app = "word" if path.suffix == ".docx" else "excel"
        file = desk.put(path, f"data/a source{path.suffix}")
        desk.act(f"{app}.convert_to_pdf", **{f"{app}_file_path": file}, pdf_file_path="/testbed/data/to pdf/out.pdf")
        made = desk.workspace / "data/to pdf/out.pdf"
        assert made.read_bytes().startswith(b"%PDF-")
        made.unlink()
