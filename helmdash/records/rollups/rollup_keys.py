"""Keys of rollups as they are stored, and how those that are asked for are found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from helmdash.core.rollups.figures import Key, Marginal
from helmdash.core.rollups.periods import Span, Width
from helmdash.records.models import Rollup
from helmdash.records.replica import connection_for

_ROLLUPS: Final = Rollup._meta.db_table


def key_text(key: Key) -> str:
    """A key as it is stored, with U+FFFD for what no database stores."""
    return orjson.dumps(key).decode()


def key_end(*words: str) -> str:
    """What a stored key ends with whose last words are these, one at least before them. No other
    key does: in a word quotes are escaped."""
    return "," + key_text(words)[1:]


# Of fewer periods the rows themselves are soon looked through.
_MANY_PERIODS: Final = 24


@dataclass(frozen=True, slots=True)
class AskedKeys:
    """The keys that are asked for of a marginal."""

    project_id: int
    marginal: Marginal
    words: Sequence[str] | None
    ends: Sequence[str]
    is_complete: bool

    def within(self, span: Span) -> tuple[str, list[Any]]:
        """A condition of a statement on the rows of a span, with its values.

        Of many periods that have every key each, PostgreSQL finds those keys by the index: a year
        of sixty models, purposes and variants is 16,000 rows, of which one variant has a tenth.
        Months have all keys, and are few.
        """
        told, values = self._said()
        is_long = span.first is None or span.end is None or span.end - span.first > _MANY_PERIODS
        has_index = self.is_complete and connection_for(Rollup).vendor == "postgresql"
        if not told or not is_long or not has_index or span.width is Width.MONTH:
            return told, values
        every = f"SELECT DISTINCT key FROM {_ROLLUPS} WHERE project_id = %s AND marginal = %s"
        place = [self.project_id, self.marginal.value]
        return (
            f" AND key = ANY(ARRAY({every} AND width = {Width.MONTH.value}{told}))",
            [*place, *values],
        )

    def _said(self) -> tuple[str, list[Any]]:
        told, values = "", []
        if self.words is not None:
            # The key up to the end of its first word, which no other word's key begins with.
            begins = [key_text((word,))[:-1] for word in self.words]
            any_ = " OR ".join(["substr(key, 1, %s) = %s"] * len(begins)) or "1 = 0"
            told += f" AND ({any_})"
            values += [each for begin in begins for each in (len(begin), begin)]
        for end in self.ends:
            told += " AND substr(key, length(key) - %s) = %s"
            values += [len(end) - 1, end]
        return told, values
