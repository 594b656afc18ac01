"""A catalog measured and indexed once, to be fitted many times.

Immutable and free of any intent or budget, so it may be kept per catalog revision and shared
between threads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from helmdash.core.catalog.catalog import LIST_OF_KIND, Catalog, EntryKind
from helmdash.core.catalog.compaction import STEPS, Layout, lay_out
from helmdash.core.catalog.detail import MAX_UNITS
from helmdash.core.ranking.ranking import Index, prepare_index
from helmdash.core.text.tokens import json_bytes


@dataclass(frozen=True, slots=True)
class Extra:
    """Unknown members of the catalog itself that are shown or dropped together."""

    keys: tuple[str, ...]
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What surrounds the entries: the braces, the two lists, and members nobody described."""

    lists: Mapping[EntryKind, str]  # the lists that are there, with their keys
    fixed_bytes: int  # the frame around empty lists, without their closing brackets
    extras: tuple[Extra, ...]

    @property
    def extra_bytes(self) -> int:
        """Bytes of all unknown members."""
        return sum(extra.size for extra in self.extras)

    def size(self, filled: int, extras: int) -> int:
        """Bytes without the entries, `filled` lists having some and `extras` bytes of extras."""
        empty = len(self.lists) - filled
        size = self.fixed_bytes + empty + extras
        return max(size, 2)  # an object with no member at all still has its closing brace


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedCatalog:
    """A catalog with its ranking index and the sizes of all its detail. Reusable, immutable.

    `totals[k]` is the size of the whole catalog after the first k steps of the ladder.
    """

    catalog: Catalog
    index: Index
    layouts: tuple[Layout, ...]
    frame: Frame
    totals: tuple[int, ...]
    smallest_bare: int
    cheapest_unit: int


def prepare(catalog: Catalog) -> PreparedCatalog:
    """Measure and index a catalog. Costs a few dozen times one json.dumps of it."""
    layouts = tuple(lay_out(entry) for entry in catalog.entries)
    frame = _frame(catalog)
    around = frame.size(len({entry.kind for entry in catalog.entries}), frame.extra_bytes)
    totals = tuple(
        around + sum(layout.levels[level].size + 1 for layout in layouts)
        for level in range(len(STEPS) + 1)
    )
    return PreparedCatalog(
        catalog=catalog,
        index=prepare_index(catalog),
        layouts=layouts,
        frame=frame,
        totals=totals,
        smallest_bare=min((layout.bare.size for layout in layouts), default=0),
        cheapest_unit=min((layout.cheapest for layout in layouts), default=0),
    )


def _frame(catalog: Catalog) -> Frame:
    raw = catalog.raw
    lists = {kind: key for kind, key in LIST_OF_KIND.items() if isinstance(raw.get(key), list)}
    nulls = [key for key in LIST_OF_KIND.values() if key in raw and key not in lists.values()]
    fixed = 1 + sum(_around(key) + 1 for key in lists.values())
    fixed += sum(_around(key) + json_bytes(raw[key]) for key in nulls)
    unknown = [key for key in raw if key not in LIST_OF_KIND.values()]
    return Frame(lists=lists, fixed_bytes=fixed, extras=_extras(raw, unknown))


def _extras(raw: Mapping[str, object], unknown: list[str]) -> tuple[Extra, ...]:
    width = -(-len(unknown) // MAX_UNITS) or 1
    groups = (tuple(unknown[at : at + width]) for at in range(0, len(unknown), width))
    return tuple(
        Extra(keys, sum(_around(key) + json_bytes(raw[key]) for key in keys)) for keys in groups
    )


def _around(key: str) -> int:
    """The bytes of a member around its value: the key, a colon, a comma (or closing brace)."""
    return json_bytes(str(key)) + 2
