"""A fitted catalog made again from its receipt, where the receipt tells enough.

A Trim names each entry's rank and the room; with the same rules and the same catalog that is all
that a layout depends on, but for what the intent named or a filter picked. So it is tried, and
counts only where sizes and fates come out as the receipt has them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from helmdash.core.budgets.budgets import Tier
from helmdash.core.catalog.compaction import COMPACTION_VERSION, render
from helmdash.core.fitting.allocation import (
    SELECTION_VERSION,
    Allocation,
    compact_layout,
    fit_layout,
    rich_entries,
)
from helmdash.core.fitting.layout import CatalogLayout
from helmdash.core.fitting.prepared import PreparedCatalog


def replay(
    prepared: PreparedCatalog, *, receipt: Mapping[str, object], tier: Tier
) -> dict[str, Mapping[str, object]] | None:
    """Each entry as the fit showed it, by its id. receipt: the Trim as JSON. None: the fit cannot
    be made again, because rules or catalog are others by now or the receipt tells too little."""
    versions, room = receipt.get("versions"), receipt.get("limit_bytes")
    now = {"compaction": COMPACTION_VERSION, "selection": SELECTION_VERSION}
    if not isinstance(room, int) or not isinstance(versions, Mapping):
        return None
    if any(versions.get(name) != version for name, version in now.items()):
        return None
    kept, order = _ids(receipt.get("kept")), _order(prepared, receipt)
    if order is None:
        return None
    for layout in _layouts(prepared, room, order, tier):
        shown = {
            item.entry.id: render(item, mask)
            for at, (item, mask) in enumerate(zip(layout.items, layout.masks, strict=True))
            if not layout.is_hidden(at)
        }
        if layout.used == receipt.get("after_bytes") and set(shown) == set(kept):
            return shown
    return None


def _layouts(
    prepared: PreparedCatalog, room: int, order: Sequence[int], tier: Tier
) -> list[CatalogLayout]:
    """As it is for one intent, and as it is for all of them."""
    own, stable = CatalogLayout(prepared, room), CatalogLayout(prepared, room)
    rich = rich_entries(tier)
    fit_layout(own, Allocation(order=order, picked=(), substitutes=(), rich=rich))
    return [own, stable] if compact_layout(stable, prepared.index.by_id) else [own]


def _order(prepared: PreparedCatalog, receipt: Mapping[str, object]) -> list[int] | None:
    """Where the entries are, by rank; None: they are not those of this catalog."""
    told = [*_ranked(receipt.get("kept")), *_ranked(receipt.get("removed"))]
    ids = [id for _, id in sorted(told)]
    positions = prepared.index.positions
    if len(ids) != len(positions) or set(ids) != set(positions):
        return None
    return [positions[id] for id in ids]


def _ids(entries: object) -> list[str]:
    return [id for _, id in _ranked(entries)]


def _ranked(entries: object) -> list[tuple[int, str]]:
    found = []
    for each in entries if isinstance(entries, list) else ():
        match each:
            case {"rank": int(rank), "id": str(id)}:
                found.append((rank, id))
    return found
