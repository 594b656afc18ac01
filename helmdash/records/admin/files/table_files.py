"""The tables that an import reads, as CSV and JSON: what cannot be one is told in a sentence."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from import_export.formats import base_formats
from tablib import Dataset, InvalidDimensions  # type: ignore[import-untyped]

from helmdash.core.text.encodings import encoding_fault
from helmdash.core.text.jsontext import MAX_DEPTH, is_too_deep
from helmdash.records.admin.files.formulas import SafeCSV

# Our widest table has a third of them.
_MOST_COLUMNS = 100
# Each is checked and saved by itself, some 3 ms; twice what the largest list of models holds today.
_MOST_ROWS = 1_000
SHOWN_CHARS = 64
# Stands for a member that a JSON object does not have: the field keeps its value.
ABSENT = object()
# How files of spreadsheet programs begin, which people take for CSV.
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")


class NoTable(ValueError):
    """No table; the message is the end of a sentence that begins "The file cannot be read in this
    format:" and says what to do."""


class StrictJSON(base_formats.JSON):  # type: ignore[misc]
    """A list of objects; each may leave members out, in any order."""

    def create_dataset(self, in_stream: str, **kwargs: Any) -> Dataset:
        """The rows of a file. Raises NoTable."""
        rows = _rows_of(in_stream)
        headers = list(dict.fromkeys(name for row in rows for name in row))
        if rows and not headers:
            raise NoTable("none of its objects has a member; each says at least its key")
        _require_bounds(len(rows), len(headers))
        for number, row in enumerate(rows, start=1):
            for name, value in row.items():
                _require_text(name, f"the name of a member of row {number}")
                if isinstance(value, str):
                    _require_text(value, f"row {number}, {name[:SHOWN_CHARS]}")
        # Each row gets a cell for every one of them.
        filled = [[row.get(name, ABSENT) for name in headers] for row in rows]
        return Dataset(*filled, headers=headers)


class BoundedCSV(SafeCSV):
    """As many rows and columns as somebody may mean, and every quote closed: else what follows one
    would be a part of its cell."""

    def create_dataset(self, in_stream: str, **kwargs: Any) -> Dataset:
        """The rows of a file. Raises NoTable."""
        if "\x00" in in_stream:
            raise NoTable("it holds U+0000, as texts in UTF-16 do; save it as CSV in UTF-8")
        try:
            found = super().create_dataset(in_stream, strict=True, **kwargs)
        except csv.Error as error:
            raise NoTable(_csv_fault(str(error))) from None
        except InvalidDimensions:
            why = "a row has another number of columns than the first line"
            raise NoTable(why) from None
        _require_bounds(len(found), len(found.headers or ()))
        _require_once(found.headers or ())
        return found


def why_unreadable(error: Exception) -> str:
    """What is wrong with a file, for whoever uploaded it."""
    if not isinstance(error, UnicodeDecodeError):
        return str(error)
    content = bytes(error.object)
    if content.startswith(_ZIP):
        return "it is a spreadsheet or an archive; save the table as CSV in UTF-8, and upload that"
    return f"{encoding_fault(content)}; save it in UTF-8"


def _rows_of(text: str) -> list[dict[str, Any]]:
    if is_too_deep(text):
        raise NoTable(f"nested more than {MAX_DEPTH} levels deep")
    try:
        rows = json.loads(text)
    except json.JSONDecodeError as error:
        raise NoTable(str(error)) from None
    except ValueError:  # Python's bound for numbers
        raise NoTable("a number in it has thousands of digits; correct it") from None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise NoTable("it must be a list of objects, as an export is")
    return rows


def _csv_fault(said: str) -> str:
    """csv's own words, where a reader can do something with them."""
    if "unexpected end" in said:
        return "a quote is opened and never closed; close it, or write it twice"
    if "field limit" in said:
        return (
            f"a cell has more than {csv.field_size_limit():,} characters; shorten it, or close its "
            "quote"
        )
    if "expected after" in said:
        return "a cell goes on behind its quotes; write a quote within a cell twice"
    return said


def _require_bounds(rows: int, columns: int) -> None:
    """Here, and not where rows are looked at: what is said there is said when all of them have
    been."""
    if columns > _MOST_COLUMNS:
        raise NoTable(f"it has more than {_MOST_COLUMNS} columns, or members of different names")
    if rows > _MOST_ROWS:
        raise NoTable(f"it has more than {_MOST_ROWS:,} rows; import it in parts")


def _require_once(headers: Iterable[str]) -> None:
    """Of two columns of one name the second would count, without a word about the first."""
    for name, count in Counter(headers).items():
        if count > 1:
            raise NoTable(f"the column {name[:SHOWN_CHARS]} stands there {count} times")


def _require_text(text: str, place: str) -> None:
    """What no database stores alike, and no page can show."""
    if "\x00" in text:
        raise NoTable(f"{place} holds U+0000; take it out")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise NoTable(f"{_shown(place)} holds half of a surrogate pair; take it out") from None


def _shown(place: str) -> str:
    return place.encode(errors="backslashreplace").decode()
