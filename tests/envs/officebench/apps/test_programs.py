"""The ocr and pdf apps, conversions and the shell, with the real programs; what is not installed here is skipped."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from envs.officebench import readers
from envs.officebench.apps.pdfs import paragraphs
from tests.envs.officebench.apps import made
from tests.envs.officebench.apps.conftest import Act


def needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed")


@needs("soffice")
class TestToPdf:
    def test_a_document_becomes_a_pdf_of_the_name_that_was_asked_for(self, act: Act, testbed: Path) -> None:
        made.document(testbed / "data/my letter.docx", ["Dear Größe"])
        said = act("word.convert_to_pdf", word_file_path="data/my letter.docx", pdf_file_path="data/out/other name.pdf")
        assert said == "Successfully converted /testbed/data/my letter.docx to /testbed/data/out/other name.pdf."
        assert readers.pdf_text(testbed / "data/out/other name.pdf").strip() == "Dear Größe"

    def test_a_workbook_becomes_a_pdf(self, act: Act, testbed: Path) -> None:
        made.workbook(testbed / "data/t.xlsx", [["Name", "Sum"], ["Ann", "1,000"]])
        said = act("excel.convert_to_pdf", excel_file_path="data/t.xlsx", pdf_file_path="data/t.pdf")
        assert said == "Successfully converted /testbed/data/t.xlsx to /testbed/data/t.pdf."
        assert readers.pdf_text(testbed / "data/t.pdf").split() == ["Name", "Sum", "Ann", "1,000"]

    def test_what_cannot_be_converted_is_said_and_leaves_nothing(self, act: Act, testbed: Path) -> None:
        (testbed / "data/t.docx").write_bytes(b"PK\x03\x04broken")
        said = act("word.convert_to_pdf", word_file_path="data/t.docx", pdf_file_path="data/t.pdf")
        assert said == "! /testbed/data/t.docx cannot be converted: LibreOffice cannot read this file."
        said = act("excel.convert_to_pdf", excel_file_path="data/no.xlsx", pdf_file_path="data/t.pdf")
        assert said == "! The file /testbed/data/no.xlsx does not exist."
        assert not (testbed / "data/t.pdf").exists()


class TestPdf:
    def test_the_text_is_shown(self, act: Act, testbed: Path) -> None:
        made.pdf(testbed / "data/p.pdf", [["one", "two"]])
        assert act("pdf.read_file", pdf_file_path="data/p.pdf") == "one\ntwo"

    def test_a_pdf_without_text_says_what_to_do(self, act: Act, testbed: Path) -> None:
        made.image(testbed / "data/i.png", "scan").rename(testbed / "data/i2.png")
        from PIL import Image

        Image.open(testbed / "data/i2.png").save(testbed / "data/scan.pdf")
        assert act("pdf.read_file", pdf_file_path="data/scan.pdf") == (
            "/testbed/data/scan.pdf holds no text; if its pages are images, convert one to an image and read that with ocr."
        )

    @pytest.mark.parametrize("content", [b"", b"no pdf", b"%PDF-1.4\nbroken"])
    def test_what_is_no_pdf_is_said(self, act: Act, testbed: Path, content: bytes) -> None:
        (testbed / "data/p.pdf").write_bytes(content)
        assert act("pdf.read_file", pdf_file_path="data/p.pdf").startswith("! /testbed/data/p.pdf cannot be read as a PDF (")

    @needs("pdftoppm")
    @pytest.mark.parametrize(("name", "kind"), [("page.png", "PNG"), ("a page.JPG", "JPEG"), ("p.tiff", "TIFF")])
    def test_the_first_page_becomes_an_image_of_a_pixel_a_point(self, act: Act, testbed: Path, name: str, kind: str) -> None:
        from PIL import Image

        made.pdf(testbed / "data/p.pdf", [["one"], ["two"]])
        said = act("pdf.convert_to_image", pdf_file_path="data/p.pdf", image_file_path=f"data/{name}")
        assert said == f"Successfully wrote the first page of /testbed/data/p.pdf to /testbed/data/{name}."
        with Image.open(testbed / "data" / name) as image:
            assert (image.format, image.size) == (kind, (400, 300))

    @needs("pdftoppm")
    def test_a_broken_pdf_or_another_kind_of_image_is_said(self, act: Act, testbed: Path) -> None:
        (testbed / "data/p.pdf").write_bytes(b"no pdf")
        said = act("pdf.convert_to_image", pdf_file_path="data/p.pdf", image_file_path="data/p.png")
        assert said.startswith("! /testbed/data/p.pdf cannot be converted: ")
        said = act("pdf.convert_to_image", pdf_file_path="data/p.pdf", image_file_path="data/p.doc")
        assert said == "! .doc is no kind of image; use .png or .jpg."
        said = act("pdf.convert_to_word", pdf_file_path="data/p.pdf", word_file_path="data/p.docx")
        assert said.startswith("! /testbed/data/p.pdf cannot be converted: ")

    @needs("pdftotext")
    def test_the_text_becomes_the_paragraphs_of_a_document(self, act: Act, testbed: Path) -> None:
        import docx

        long = "a line that is long enough to reach the edge of"
        made.pdf(testbed / "data/p.pdf", [[long, "its column and goes on", "Ben"], ["the next page"]])
        said = act("pdf.convert_to_word", pdf_file_path="data/p.pdf", word_file_path="data/d.docx")
        assert said == "Successfully converted /testbed/data/p.pdf to /testbed/data/d.docx."
        texts = [paragraph.text for paragraph in docx.Document(str(testbed / "data/d.docx")).paragraphs]
        assert texts == [f"{long} its column and goes on\nBen", "the next page"]

    def test_characters_that_xml_forbids_are_dropped(self) -> None:
        word = '<word xMin="0" xMax="9">a\x0cb</word>'
        line = f'<line xMin="0" xMax="9">{word}</line>'
        page = f'<page width="100"><block xMin="0" xMax="9">{line}</block></page>'
        layout = f'<html xmlns="http://www.w3.org/1999/xhtml"><body><doc>{page}</doc></body></html>'
        assert list(paragraphs(layout.encode())) == ["ab"]


@needs("tesseract")
class TestOcr:
    @pytest.mark.parametrize("name", ["scan.png", "a scan.jpg", "scan.bmp", "scan.gif"])
    def test_the_text_in_an_image_is_shown(self, act: Act, testbed: Path, name: str) -> None:
        made.image(testbed / "data" / name, "Hello World 42")
        assert act("ocr.recognize_file", file_path=f"data/{name}") == f"The text in /testbed/data/{name}:\nHello World 42"

    def test_what_is_transparent_is_white(self, act: Act, testbed: Path) -> None:
        made.image(testbed / "data/t.png", "Hello World 42", mode="RGBA", background=(0, 0, 0, 0))
        assert act("ocr.recognize_file", file_path="data/t.png").endswith("\nHello World 42")

    def test_an_empty_image_and_a_file_that_is_none_are_said(self, act: Act, testbed: Path) -> None:
        made.image(testbed / "data/e.png", "")
        assert act("ocr.recognize_file", file_path="data/e.png") == "No text was recognised in /testbed/data/e.png."
        (testbed / "data/n.png").write_text("no image")
        assert act("ocr.recognize_file", file_path="data/n.png") == (
            "! /testbed/data/n.png cannot be read as an image (UnidentifiedImageError)."
        )


def test_a_program_that_is_missing_is_named(act: Act, testbed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made.image(testbed / "data/i.png", "x")
    monkeypatch.setenv("PATH", "/nowhere")
    assert act("ocr.recognize_file", file_path="data/i.png") == "! The program tesseract is not installed here."


class TestShell:
    def test_a_command_shows_both_its_streams(self, act: Act, testbed: Path) -> None:
        (testbed / "data/a b.txt").write_text("")
        assert act("shell.command", command="ls data; echo \"it's\" '$HOME' >&2") == "a b.txt\nit's $HOME"

    def test_silence_and_failure_are_said(self, act: Act) -> None:
        assert act("shell.command", command="true") == "The command ran and printed nothing."
        assert act("shell.command", command="echo out; exit 3") == "! out\nThe command ended with code 3."
        assert act("shell.command", command="exit 3") == "! The command ended with code 3."

    def test_the_workspace_is_called_testbed_wherever_it_is(self, act: Act, testbed: Path) -> None:
        assert act("shell.command", command="echo x > /testbed/data/f; cat /testbed/data/f; pwd") == "x\n/testbed"
        assert act("shell.command", command="echo /testbedroom /testbed-2") == "/testbedroom /testbed-2"

    def test_cd_lasts_for_commands_and_relative_paths(self, act: Act) -> None:
        assert act("shell.command", command="cd /testbed/data && pwd") == "/testbed/data"
        assert act("shell.command", command="pwd") == "/testbed/data"
        assert act("word.create_new_file", file_path="here.docx").endswith("/testbed/data/here.docx.")
        assert act("shell.command", command="cd nowhere").startswith("! ")
        assert act("shell.command", command="(cd /)\npwd") == "/testbed/data"

    def test_what_runs_in_the_background_does_not_hold_up_the_answer(self, act: Act) -> None:
        assert act("shell.command", command="sleep 3 & echo done") == "done"

    def test_input_is_empty_and_parts_are_joined(self, act: Act) -> None:
        assert act("shell.command", command="cat") == "The command ran and printed nothing."
        assert act("shell.command", command=["echo", "a", "b"]) == "a b"

    @pytest.mark.parametrize("command", ["", " ", None, {"a": 1}, 5, "a\0b"])
    def test_what_is_no_command_is_refused(self, act: Act, command: object) -> None:
        assert act("shell.command", command=command) == "! command must be a command line."

    def test_endless_output_is_cut(self, act: Act) -> None:
        shown = act("shell.command", command="head -c 3000000 /dev/zero | tr '\\0' x")
        assert shown == "x" * 100_000
