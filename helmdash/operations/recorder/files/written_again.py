"""The lines of calls in memory, made once more: for a file of the spool that somebody cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from helmdash.operations.recorder.files.spool import Entry
from helmdash.operations.recorder.files.spool_lines import call_line
from helmdash.operations.recorder.files.units import Unit
from helmdash.operations.recorder.kept_texts import spooled, spooled_figures


def lines_again(units: Sequence[Unit]) -> dict[Entry, bytes]:
    """Where each of them lies, and its line, just as long as it was.

    Left out are those whose line cannot be made so.
    """
    found: dict[Entry, bytes] = {}
    for unit in units:
        entry = unit.entry
        if entry is None:
            continue
        for line in _lines(unit, entry):
            if len(line) <= entry.size:
                found[entry] = line[:-1].ljust(entry.size - 1) + b"\n"
                break
    return found


def _lines(unit: Unit, entry: Entry) -> Iterator[bytes]:
    """With all that its project keeps, and with its figures alone, as where the spool ran full."""
    if unit.line is not None:
        yield unit.line + b"\n"
    if unit.project is None:
        return
    (capture,) = unit.captures
    yield call_line(entry.seq, unit.project_id, spooled(capture, unit.project).line)
    yield call_line(entry.seq, unit.project_id, spooled_figures(capture, unit.project))
