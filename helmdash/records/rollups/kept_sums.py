"""Sums of rows of rollups that this process has added up before.

A year of all models is some six hundred rows of a thousand words each, and thirty days are some
four thousand of a hundred: an hour changes a few of them, and to read and add up the others anew
took a third of the models page.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple

from helmdash.core.rollups.figures import Counts, Sum, add
from helmdash.core.rollups.periods import Width

# Three widths of sixty models, purposes and variants, say, of a few projects, each with and without
# its newest row. Each is some hundred kilobytes at most, and some ten usually.
_MOST_KEPT: Final = 1024
# A model's name as it was spelt: which was the last one, only the rows apart tell.
_SPELT: Final = "s:"


class Row(NamedTuple):
    """A row as it is stored: its figures are JSON, plain counts and distributions."""

    width: int
    period: int
    figures: str
    distributions: tuple[str | None, ...]


class Versioned(NamedTuple):
    """A row of which it is known whether it has changed. row: its figures may not be read yet."""

    pk: int
    version: str
    row: Row


Piece = tuple[Width, int, Counts]
_kept: OrderedDict[Hashable, tuple[Hashable, list[Piece]]] = OrderedDict()
_lock: Final = threading.Lock()


def summed(place: Hashable, rows: Iterable[Row], load: Callable[[Row], Counts]) -> list[Piece]:
    """The figures of some rows as one piece, of the newest period, and how a model was spelt as a
    piece for each row. Not to be changed.

    place: what the rows are of, under which the sum is kept. It is taken as long as the texts of
    all rows are the same.
    """
    ordered = sorted(rows, key=lambda row: row.period)
    digest = _digest(ordered)
    pieces = _known(place, digest)
    if pieces is None:
        pieces = _add_up(ordered, load)
        _keep(place, digest, pieces)
    return pieces


class VersionedSum:
    """The figures of some rows as `summed` has them, without reading those that have not changed.

    The newest row changes with each fold, the others seldom: they have a sum of their own.
    """

    def __init__(self, place: Hashable, rows: Iterable[Versioned]) -> None:
        """place: as for `summed`. rows: one at least."""
        self._rows = sorted(rows, key=lambda each: each.row.period)
        self._places = (place, "all"), (place, "all but the newest")
        self._versions = tuple((each.pk, each.version) for each in self._rows)
        self._whole = _known(self._places[0], self._versions)
        self._older = None if self._whole else _known(self._places[1], self._versions[:-1])

    @property
    def missing(self) -> Sequence[Versioned]:
        """The rows whose figures are wanted."""
        if self._whole is not None:
            return ()
        return self._rows if self._older is None else self._rows[-1:]

    def pieces(self, rows: Mapping[int, Row], load: Callable[[Row], Counts]) -> list[Piece]:
        """The figures, `rows` being those that were missing, by their pk. Not to be changed."""
        if self._whole is not None:
            return self._whole
        *older, newest = (each.pk for each in self._rows)
        if self._older is None and older:
            self._older = _add_up([rows[pk] for pk in older], load)
            _keep(self._places[1], self._versions[:-1], self._older)
        pieces = _add_up([rows[newest]], load, self._older or ())
        _keep(self._places[0], self._versions, pieces)
        return pieces


def _known(place: Hashable, state: Hashable) -> list[Piece] | None:
    """The sum that is kept there, if it is of that state."""
    with _lock:
        kept = _kept.get(place)
        if kept is None or kept[0] != state:
            return None
        _kept.move_to_end(place)
        return kept[1]


def _keep(place: Hashable, state: Hashable, pieces: list[Piece]) -> None:
    with _lock:
        _kept[place] = state, pieces
        if len(_kept) > _MOST_KEPT:
            _kept.popitem(last=False)


def _digest(rows: Sequence[Row]) -> bytes:
    digest = blake2b(digest_size=16)
    for row in rows:
        texts = [row.figures, *(text or "" for text in row.distributions)]
        # With the length of each, so that no two lists of texts come to the same bytes.
        digest.update(f"{row.width} {row.period} {[*map(len, texts)]}".encode())
        digest.update("".join(texts).encode())
    return digest.digest()


def _add_up(
    rows: Sequence[Row], load: Callable[[Row], Counts], older: Sequence[Piece] = ()
) -> list[Piece]:
    """older: what other rows have come to, begun with."""
    total: Counts = dict(older[0][2]) if older else {}
    pieces = [*older[1:]]
    for row in rows:
        counts = load(row)
        spelt = {word: counts.pop(word) for word in [*counts] if word.startswith(_SPELT)}
        add(total, counts)
        if spelt:
            pieces.append((Width(row.width), row.period, spelt))
    newest = rows[-1]
    return [(Width(newest.width), newest.period, Sum(total)), *pieces]
