"""The excel and word apps, and how all apps find their files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from envs.officebench.apps.sheets import cell_value
from tests.envs.officebench.apps import made
from tests.envs.officebench.apps.conftest import Act


class TestPaths:
    @pytest.mark.parametrize("name", ["plain", "with space", 'it\'s "quoted"', "Größe 表", "semi;colon $HOME `id`", "-dash"])
    @pytest.mark.parametrize("folder", ["/testbed/data/", "data/", "./data/../data/"])
    def test_any_name_works_from_the_workspace_and_absolute(self, act: Act, testbed: Path, name: str, folder: str) -> None:
        path = f"{folder}{name}.docx"
        assert act("word.create_new_file", file_path=path).startswith("Successfully created")
        assert act("word.write_to_file", file_path=path, contents="here").startswith("Successfully wrote")
        assert act("word.read_file", file_path=path).endswith("\nhere")
        assert (testbed / "data" / f"{name}.docx").is_file()

    def test_a_missing_folder_is_made(self, act: Act, testbed: Path) -> None:
        assert act("excel.create_new_file", file_path="data/new/deep/x.xlsx").startswith("Successfully")
        assert (testbed / "data/new/deep/x.xlsx").is_file()

    @pytest.mark.parametrize(
        ("action", "arguments"),
        [
            ("excel.read_file", {}),
            ("excel.set_cell", {"row_idx": 1, "column_idx": 1, "text": "x"}),
            ("excel.delete_cell", {"row_idx": 1, "column_idx": 1}),
            ("word.read_file", {}),
            ("word.write_to_file", {"contents": "x"}),
            ("ocr.recognize_file", {}),
        ],
    )
    def test_missing_files_and_folders_are_named(self, act: Act, testbed: Path, action: str, arguments: dict[str, Any]) -> None:
        assert act(action, file_path="data/no.xlsx", **arguments) == "! The file /testbed/data/no.xlsx does not exist."
        assert act(action, file_path="/testbed/data", **arguments) == "! /testbed/data is a folder, not a file."
        assert not (testbed / "data/no.xlsx").exists()

    def test_devices_and_pipes_are_refused(self, act: Act, testbed: Path) -> None:
        os.mkfifo(testbed / "data/pipe")
        for path in ("/testbed/data/pipe", "/dev/zero"):
            assert act("word.read_file", file_path=path) == f"! {path} is no ordinary file."
            assert act("word.create_new_file", file_path=path) == f"! {path} is no ordinary file."

    @pytest.mark.parametrize("value", ["", "  ", "a\0b"])
    def test_what_is_no_path_is_refused(self, act: Act, value: str) -> None:
        assert act("excel.read_file", file_path=value) == "! file_path must be a path."

    @pytest.mark.parametrize(
        ("value", "what"), [(None, "nothing"), ({"a": 1}, "a nested value"), ([["a"], ["b"]], "a nested value")]
    )
    def test_what_is_no_text_is_refused(self, act: Act, value: Any, what: str) -> None:
        assert act("excel.read_file", file_path=value) == f"! file_path must be text, not {what}."

    def test_a_file_instead_of_a_folder_is_said(self, act: Act, testbed: Path) -> None:
        (testbed / "data/f").write_text("")
        said = act("excel.create_new_file", file_path="data/f/x.xlsx")
        assert said == "! The folder /testbed/data/f cannot be made: File exists."


class TestCellTypes:
    @pytest.mark.parametrize(
        ("given", "value"),
        [
            ("100", 100), (100, 100), ("-3.50", -3.5), ("1e3", 1000.0), ("+5", 5), ("True", True), (False, False),
            ("1", 1), ("0", 0),
            ("'5'", "5"), ('"text"', "text"),
            ("007", "007"), ("1,000", "1,000"), ("$5", "$5"), ("10%", "10%"), ("2024-05-01", "2024-05-01"), ("10:30", "10:30"),
            ("Smith, John", "Smith, John"), ("[Draft]", "[Draft]"), ("[1, 2]", "[1, 2]"), ("1+2", "1+2"), ("# 3", "# 3"),
            ("5 # x", "5 # x"), ("nan", "nan"), ("1e999", "1e999"), ("1j", "1j"), ("b'x'", "b'x'"), ("...", "..."),
            ("=SUM(A1:A2)", "=SUM(A1:A2)"), ("", ""), ("true", "true"), ("é 表", "é 表"), ("9" * 5000, "9" * 5000),
            (None, ""), ("None", ""),
        ],
    )  # fmt: skip
    def test_text_is_typed_as_the_official_app_types_it(self, given: Any, value: Any) -> None:
        got = cell_value(given)
        assert (got, type(got)) == (value, type(value))


class TestExcel:
    def test_cells_are_written_read_and_emptied(self, act: Act) -> None:
        file = "data/t.xlsx"
        assert act("excel.create_new_file", file_path=file) == "Successfully created the workbook /testbed/data/t.xlsx."
        said = act("excel.set_cell", file_path=file, row_idx="2", column_idx=1, text="1,000")
        assert said == "Successfully wrote cell (2, 1) of /testbed/data/t.xlsx."
        act("excel.set_cell", file_path=file, row_idx=1, column_idx=2, text=["only"])
        assert act("excel.read_file", file_path=file) == (
            "The active sheet of /testbed/data/t.xlsx:\n(1, 1): [Empty Cell]\t(1, 2): only\t\n(2, 1): 1,000\t(2, 2): [Empty Cell]"
        )
        assert act("excel.delete_cell", file_path=file, row_idx=1, column_idx=2).startswith("Successfully emptied cell (1, 2)")
        assert "(1, 1): [Empty Cell]\t(1, 2): [Empty Cell]\t\n" in act("excel.read_file", file_path=file)

    def test_other_cells_keep_value_and_type(self, act: Act, testbed: Path) -> None:
        import openpyxl

        path = made.workbook(testbed / "data/t.xlsx", [["a", 1, 2.5, True, "=B1"]])
        act("excel.set_cell", file_path="data/t.xlsx", row_idx=2, column_idx=1, text="x")
        assert [cell.value for cell in openpyxl.load_workbook(path).active[1]] == ["a", 1, 2.5, True, "=B1"]

    def test_none_empties_a_cell(self, act: Act, testbed: Path) -> None:
        made.workbook(testbed / "data/t.xlsx", [["a", "b"]])
        act("excel.set_cell", file_path="data/t.xlsx", row_idx=1, column_idx=1, text=None)
        assert act("excel.read_file", file_path="data/t.xlsx").endswith("(1, 1): [Empty Cell]\t(1, 2): b")

    @pytest.mark.parametrize("value", [["a", "b"], [], {"a": 1}])
    def test_a_cell_takes_no_list(self, act: Act, testbed: Path, value: Any) -> None:
        made.workbook(testbed / "data/t.xlsx", [["a"]])
        said = act("excel.set_cell", file_path="data/t.xlsx", row_idx=1, column_idx=1, text=value)
        assert said == "! A cell holds a single value; write the values one by one."

    @pytest.mark.parametrize("index", [0, -1, "A", 1.5, None, "inf", 1_048_577, [1, 2]])
    def test_an_index_is_a_number_from_one(self, act: Act, testbed: Path, index: Any) -> None:
        made.workbook(testbed / "data/t.xlsx", [["a"]])
        said = act("excel.set_cell", file_path="data/t.xlsx", row_idx=index, column_idx=1, text="x")
        assert said == "! row_idx must be a whole number from 1 to 1048576."

    def test_what_a_cell_cannot_hold_changes_nothing(self, act: Act, testbed: Path) -> None:
        path = made.workbook(testbed / "data/t.xlsx", [["a"]])
        before = path.read_bytes()
        cell = {"file_path": "data/t.xlsx", "row_idx": 1, "column_idx": 1}
        assert act("excel.set_cell", text="a\x07b", **cell) == "! The text holds control characters, which a cell cannot."
        assert act("excel.set_cell", text="x" * 32_768, **cell) == "! A cell holds at most 32767 characters."
        assert path.read_bytes() == before

    def test_the_inside_of_a_merged_cell_is_refused(self, act: Act, testbed: Path) -> None:
        import openpyxl

        book = openpyxl.Workbook()
        book.active.merge_cells("A1:B2")
        book.save(testbed / "data/t.xlsx")
        said = act("excel.set_cell", file_path="data/t.xlsx", row_idx=2, column_idx=2, text="x")
        assert said == "! Cell (2, 2) is part of a merged cell; write its first cell."

    def test_an_existing_workbook_is_not_made_anew(self, act: Act, testbed: Path) -> None:
        made.workbook(testbed / "data/t.xlsx", [["kept"]])
        assert act("excel.create_new_file", file_path="data/t.xlsx") == "! The file /testbed/data/t.xlsx exists already."

    @pytest.mark.parametrize("content", [b"", b"no workbook", b"PK\x03\x04broken"])
    def test_what_is_no_workbook_is_said(self, act: Act, testbed: Path, content: bytes) -> None:
        (testbed / "data/t.xlsx").write_bytes(content)
        assert (
            act("excel.read_file", file_path="data/t.xlsx") == "! /testbed/data/t.xlsx cannot be read as a workbook (BadZipFile)."
        )
        said = act("excel.delete_cell", file_path="data/t.xlsx", row_idx=1, column_idx=1)
        assert said == "! /testbed/data/t.xlsx cannot be read as a workbook (BadZipFile)."
        assert (testbed / "data/t.xlsx").read_bytes() == content


class TestWord:
    def test_text_goes_to_the_end_as_one_paragraph(self, act: Act, testbed: Path) -> None:
        import docx

        made.document(testbed / "data/d.docx", ["first"])
        assert act("word.write_to_file", file_path="data/d.docx", contents='It\'s "new"\n1,000') == (
            "Successfully wrote to /testbed/data/d.docx."
        )
        assert [p.text for p in docx.Document(str(testbed / "data/d.docx")).paragraphs] == ["first", 'It\'s "new"\n1,000']
        assert act("word.read_file", file_path="data/d.docx") == ('The text of /testbed/data/d.docx:\nfirst\nIt\'s "new"\n1,000')

    @pytest.mark.parametrize(("contents", "text"), [(["a", "b"], "a\nb"), (12, "12"), ("None", "None"), ("", "")])
    def test_lists_and_numbers_are_written_as_text(self, act: Act, testbed: Path, contents: Any, text: str) -> None:
        import docx

        made.document(testbed / "data/d.docx", [])
        act("word.write_to_file", file_path="data/d.docx", contents=contents)
        assert [p.text for p in docx.Document(str(testbed / "data/d.docx")).paragraphs] == [text]

    def test_creating_replaces_a_document_of_the_name(self, act: Act, testbed: Path) -> None:
        made.document(testbed / "data/d.docx", ["old"])
        assert act("word.create_new_file", file_path="data/d.docx") == "Successfully created the document /testbed/data/d.docx."
        assert act("word.read_file", file_path="data/d.docx") == "/testbed/data/d.docx holds no text in paragraphs."

    def test_control_characters_are_refused(self, act: Act, testbed: Path) -> None:
        made.document(testbed / "data/d.docx", ["old"])
        said = act("word.write_to_file", file_path="data/d.docx", contents="a\x00b")
        assert said == "! The text holds control characters, which a document cannot."

    def test_what_is_no_document_is_said(self, act: Act, testbed: Path) -> None:
        made.workbook(testbed / "data/t.xlsx", [["a"]])
        (testbed / "data/t.txt").write_text("text")
        assert act("word.read_file", file_path="data/t.xlsx") == (
            "! /testbed/data/t.xlsx cannot be read as a Word document (ValueError)."
        )
        assert act("word.write_to_file", file_path="data/t.txt", contents="x") == (
            "! /testbed/data/t.txt cannot be read as a Word document (PackageNotFoundError)."
        )
