"""CSV: read back by the csv module, and by spreadsheets that would run a formula."""

from __future__ import annotations

import csv
import io
import shutil
import subprocess
import warnings
from pathlib import Path

import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course.grades import Batch
from course.render.csv import COLUMNS, cell, table, table_for_excel
from course.render.plain import line
from tests.arbitrary import HOSTILE, anything, batches, everything_hostile, ordinary, quickly, whole

STARTS = tuple("=+-@\t\r\n＝＋－＠")


def rows_of(data: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(data.decode(), newline=""), strict=True))


@quickly
@given(batches())
def test_every_lab_is_a_row_and_every_row_a_line(batch: Batch) -> None:
    """All columns, in order; the cells hold what the grade holds."""
    data = whole(table(batch))
    rows = rows_of(data)
    expected = [(grade.name, lab.id if lab else "") for grade in batch.grades
                for lab in grade.labs or (None,)]
    assert [(row["student"], row["lab"]) for row in rows] == [
        (cell(name), cell(lab)) for name, lab in expected]
    assert all(tuple(row) == COLUMNS and None not in row.values() for row in rows)
    assert len(data.decode().split("\r\n")) == len(rows) + 2
    assert "\n" not in data.decode().replace("\r\n", "")


@quickly
@given(batches(), st.sampled_from(",;\t"))
def test_no_cell_is_a_formula_whatever_the_separator(batch: Batch, separator: str) -> None:
    """Also where a program takes semicolons or tabs for what separates cells."""
    text = io.StringIO(whole(table(batch)).decode(), newline="")
    for row in csv.reader(text, delimiter=separator):
        for value in row:
            assert not value.strip(" \"'").startswith(STARTS) or value.lstrip(" \"").startswith("'")


@quickly
@given(st.builds(str.__add__, st.sampled_from(["", "=", " =", "\t=", "\r=", "'="]), anything))
def test_a_spreadsheet_library_takes_no_cell_for_a_formula(text: str) -> None:
    """openpyxl calls a cell a formula by what it begins with."""
    sheet = openpyxl.Workbook().active
    assert sheet is not None
    sheet.append([cell(text)])
    assert sheet["A1"].data_type != "f"


@quickly
@given(st.text("abc xyz 0123456789 ,()[]尚未", max_size=20))
def test_harmless_text_is_not_changed(text: str) -> None:
    """The guard is seen only where it guards."""
    assert cell(text) == text == line(text)


@quickly
@given(batches())
def test_points_of_the_rows_add_up(batch: Batch) -> None:
    """Points are numbers; a submission that is not graded has none."""
    for grade in batch.grades:
        rows = rows_of(whole(table(Batch("", "", "", "", "probes", [grade]))))
        assert sum(float(row["points"]) for row in rows) == pytest.approx(grade.points, abs=1e-3)


def test_a_real_spreadsheet_program_finds_no_formula(tmp_path: Path) -> None:
    """Gnumeric opens the table; openpyxl looks at what it made of it."""
    program = shutil.which("ssconvert")
    if program is None:
        pytest.skip("NOT RUN: no spreadsheet program here (apt-get install gnumeric)")
    path = tmp_path / "grades.csv"
    path.write_bytes(whole(table(everything_hostile())))
    subprocess.run([program, str(path), str(tmp_path / "grades.xlsx")], check=True, timeout=120,
                   capture_output=True, env={"HOME": str(tmp_path), "LC_ALL": "C.UTF-8"})
    with warnings.catch_warnings(action="ignore"):  # gnumeric writes no default style
        sheet = openpyxl.load_workbook(tmp_path / "grades.xlsx").active
    assert sheet is not None
    cells = [found for row in sheet.iter_rows() for found in row]
    assert [found.value for found in cells if found.data_type == "f"] == []
    assert sheet.max_row == len(HOSTILE) + 1 and sheet.max_column == len(COLUMNS)


def test_excel_gets_a_mark_and_the_same_rows() -> None:
    """The mark is what utf-8-sig takes away."""
    data = whole(table_for_excel(ordinary()))
    assert data.decode("utf-8-sig").encode() == whole(table(ordinary()))


def test_what_a_class_looks_like() -> None:
    """One row a lab; the first red stands in its lab's row."""
    rows = rows_of(whole(table(ordinary())))
    assert [(row["student"], row["lab"], row["status"], row["points"]) for row in rows] == [
        ("amy", "02.1", "passed", "2"), ("amy", "02.2", "passed", "1"),
        ("ben", "02.1", "passed", "2"), ("ben", "02.2", "failed", "0")]
    assert rows[3]["first_red_error"] == "AssertionError: assert [] == ['a']"
    assert rows[2]["first_red"] == ""
