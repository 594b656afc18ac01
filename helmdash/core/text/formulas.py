"""Cells of a file that a spreadsheet opens: those that it would take for formulas are defused.

A cell that begins like a formula gets an apostrophe in front, which spreadsheets hide and our own
import takes away again; one that begins with apostrophes before such a sign gets one more, so that
what comes back is always what left. Numbers are numbers, and stay as they are.
"""

from __future__ import annotations

import re
from typing import Any

# What spreadsheets take for the beginning of a formula: also behind blanks, which they drop, and in
# the full width of East Asian scripts. A tab, a return or a line feed can push the rest of a cell
# into the next one, where it begins anew.
_FORMULA = re.compile(r"'*(?:[\t\r\n]|\s*[=+\-@\uff1d\uff0b\uff0d\uff20])")
_DEFUSED = re.compile(f"'{_FORMULA.pattern}")


def defused(cell: Any) -> Any:
    """A cell as it may leave: text that begins like a formula with an apostrophe before it.

    >>> [defused(each) for each in ("=1+1", "'=1", "it's", -5)]
    ["'=1+1", "''=1", "it's", -5]
    """
    if isinstance(cell, str) and _FORMULA.match(cell):
        return f"'{cell}"
    return cell


def restored(cell: Any) -> Any:
    """A cell as it was before `defused`; any other is left alone.

    >>> [restored(each) for each in ("'=1+1", "''=1", "it's", "'quoted'")]
    ['=1+1', "'=1", "it's", "'quoted'"]
    """
    if isinstance(cell, str) and _DEFUSED.match(cell):
        return cell[1:]
    return cell
