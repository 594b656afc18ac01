"""The board on which a catalog is fitted: what is shown of each entry, and the room left.

Every change is arithmetic on sizes measured beforehand; nothing is rendered here.
"""

from __future__ import annotations

from typing import Final

from helmdash.core.catalog.catalog import EntryKind
from helmdash.core.catalog.compaction import View, enrich
from helmdash.core.fitting.prepared import PreparedCatalog

HIDDEN: Final = -1  # the mask of an entry that is not shown at all


class Board:
    """What is shown so far, and the room that is left."""

    def __init__(self, prepared: PreparedCatalog, room: int) -> None:
        self.prepared = prepared
        self.layouts = prepared.layouts
        self.room = room
        self.filled: set[EntryKind] = set()
        self.extras: frozenset[int] = frozenset()
        self.clear()

    @property
    def used(self) -> int:
        """Bytes of the catalog as it is shown now."""
        return self.room - self.left

    @property
    def has_hidden(self) -> bool:
        """Whether any entry is not shown at all."""
        return HIDDEN in self.masks

    def is_hidden(self, at: int) -> bool:
        """Whether an entry is not shown at all."""
        return self.masks[at] == HIDDEN

    def is_only_named(self, at: int) -> bool:
        """Whether an entry is shown by its name alone, though there is more to tell."""
        layout = self.layouts[at]
        return self.masks[at] == layout.bare.mask != layout.one_line.mask

    def clear(self) -> None:
        """Hide every entry; what the frame shows stays."""
        self.masks = [HIDDEN] * len(self.layouts)
        self.sizes = [0] * len(self.layouts)
        self.filled = set()
        self.left = self.room - self.prepared.frame.size(0, self.extra_bytes)

    def show_level(self, level: int) -> None:
        """Show everything, each entry at a rung of the ladder, whether it fits or not."""
        views = [layout.levels[level] for layout in self.layouts]
        self.masks = [view.mask for view in views]
        self.sizes = [view.size for view in views]
        self.filled = {layout.entry.kind for layout in self.layouts}
        self.left = self.room - self.prepared.totals[level]
        self.extras = frozenset(range(len(self.prepared.frame.extras)))

    def price(self, at: int, view: View) -> int:
        """The bytes it takes to show an entry so (less than nothing when it shows less)."""
        if self.masks[at] != HIDDEN:
            return view.size - self.sizes[at]
        # The comma before an entry, unless it is the first of its list.
        return view.size + (self.layouts[at].entry.kind in self.filled)

    def show(self, at: int, view: View) -> None:
        """Show an entry so, whether it fits or not."""
        self.left -= self.price(at, view)
        self.filled.add(self.layouts[at].entry.kind)
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
        layout, mask, room = self.layouts[at], self.masks[at], self.left - spare
        full = layout.levels[0]
        if mask in (full.mask, HIDDEN) or room < layout.cheapest:
            return
        if full.size - self.sizes[at] <= room:
            self.show(at, full)
            return
        self.masks[at], used = enrich(layout, mask, room)
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
