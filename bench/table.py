"""One row of a benchmark's result, and the table that shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured, against what in the same run, and whether the goal was met.

    `ratio` is None where nothing was compared, `ok` where there is no goal.
    """

    name: str
    figure: str
    against: str
    ratio: float | None
    goal: str
    ok: bool | None


_HEADS = ("what", "figure", "against", "ratio", "goal", "")


def print_table(rows: Sequence[Row]) -> None:
    """Print rows in columns, names to the left and figures to the right."""
    lines = [_HEADS, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEADS))]
    for line in lines:
        first, *others = line
        figures = (cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))
        print("  ".join((first.ljust(widths[0]), *figures)).rstrip())


def _cells(row: Row) -> tuple[str, ...]:
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
    verdict = {True: "met", False: "MISSED", None: ""}[row.ok]
    return (row.name, row.figure, row.against, ratio, row.goal, verdict)
