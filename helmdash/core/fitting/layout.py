"""The layout of a catalog while it is fitted: what is shown of each entry, and the room left.

Every change is arithmetic on sizes measured beforehand; nothing is rendered here.
"""

from __future__ import annotations

from typing import Final

from helmdash.core.catalog.catalog import EntryKind
from helmdash.core.catalog.compaction import View, enrich
from helmdash.core.fitting.prepared import PreparedCatalog

HIDDEN: Final = -1  # the mask of an entry that is not shown at all


class CatalogLayout:
    """What is shown so far, and the room that is left."""

    def __init__(self, prepared: PreparedCatalog, room: int) -> None:
        self.prepared = prepared
        self.items = prepared.layouts
        self.room = room
        self.filled: set[EntryKind] = set()
        self.extras: frozenset[int] = frozenset()
        self.clear()

    @property
    def used(self) -> int:
        """Bytes that the catalog takes as it is shown now."""
        return self.room - self.left

    @property
    def has_hidden(self) -> bool:
        """True as soon as one entry is not even named."""
        return HIDDEN in self.masks

    def is_hidden(self, at: int) -> bool:
        """Whether an entry is not shown at all."""
        return self.masks[at] == HIDDEN

    def is_only_named(self, at: int) -> bool:
        """Whether an entry is shown by its name alone, though there is more to tell."""
        item = self.items[at]
        return self.masks[at] == item.bare.mask != item.one_line.mask

    def clear(self) -> None:
        """Hide every entry; what the frame shows stays."""
        self.masks = [HIDDEN] * len(self.items)
        self.sizes = [0] * len(self.items)
        self.filled = set()
        self.left = self.room - self.prepared.frame.size(0, self.extra_bytes)

    def show_level(self, level: int) -> None:
        """Show everything, each entry at a rung of the ladder, whether it fits or not."""
        views = [item.levels[level] for item in self.items]
        self.masks = [view.mask for view in views]
        self.sizes = [view.size for view in views]
        self.filled = {item.entry.kind for item in self.items}
        self.left = self.room - self.prepared.totals[level]
        self.extras = frozenset(range(len(self.prepared.frame.extras)))

    def price(self, at: int, view: View) -> int:
        """The bytes it takes to show an entry so (less than nothing when it shows less)."""
        if self.masks[at] != HIDDEN:
            return view.size - self.sizes[at]
        # The comma before an entry, unless it is the first of its list.
        return view.size + (self.items[at].entry.kind in self.filled)

    def show(self, at: int, view: View) -> None:
        """Show an entry so, whether it fits or not."""
        self.left -= self.price(at, view)
        self.filled.add(self.items[at].entry.kind)
        self.masks[at] = view.mask
        self.sizes[at] = view.size

    def spare_beyond(self, share: float) -> int:
        """The bytes to be spared so that at most this part of the room is spent from now on."""
        return max(self.left - int(self.room * share), 0)

    def try_show(self, at: int, view: View, spare: int = 0) -> bool:
        """Show an entry so, if at least `spare` bytes stay free."""
        if self.price(at, view) > self.left - spare:
            return False
        self.show(at, view)
        return True

    def enrich(self, at: int, spare: int = 0) -> None:
        """Bring back what fits of an entry that is shown, `spare` bytes staying free."""
        item, mask, room = self.items[at], self.masks[at], self.left - spare
        full = item.levels[0]
        if mask in (full.mask, HIDDEN) or room < item.cheapest:
            return
        if full.size - self.sizes[at] <= room:
            self.show(at, full)
            return
        self.masks[at], used = enrich(item, mask, room)
        self.sizes[at] += used
        self.left -= used

    def hide_extras(self) -> None:
        """Drop the unknown members of the catalog, from the last, until the rest fits."""
        for at in reversed(range(len(self.prepared.frame.extras))):
            if self.left >= 0:
                return
            self._set_extras(self.extras - {at})

    def refill_extras(self) -> None:
        """Bring back the unknown members of the catalog that fit."""
        for at, extra in enumerate(self.prepared.frame.extras):
            if at not in self.extras and extra.size <= self.left:
                self._set_extras(self.extras | {at})

    def _set_extras(self, extras: frozenset[int]) -> None:
        frame, filled = self.prepared.frame, len(self.filled)
        before = frame.size(filled, self.extra_bytes)
        self.extras = extras
        self.left += before - frame.size(filled, self.extra_bytes)

    @property
    def extra_bytes(self) -> int:
        """Bytes of the unknown members of the catalog that are shown."""
        return sum(self.prepared.frame.extras[at].size for at in self.extras)
