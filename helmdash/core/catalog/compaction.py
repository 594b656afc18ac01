"""Compaction: the ladder of steps, and one entry rendered at any level of detail.

Source: the order of helmdeck ADR 050. The last step that is needed goes entry by entry.
What is shown of an entry is a bit mask over its units of detail, so that fitting is arithmetic
on sizes; only what is sent in the end is assembled.

Never dropped: `name`, `id` and `supersedes`. The given objects are never changed; a rendered
entry may share parts with them, so read what comes out, do not write to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from helmdash.core.catalog.catalog import CatalogEntry
from helmdash.core.catalog.detail import (
    Detail,
    DetailMember,
    DropOrder,
    MemberShape,
    field_names,
    slim_step,
    take_apart,
)

COMPACTION_VERSION: Final = "compaction-1"


@dataclass(frozen=True, slots=True)
class LadderStep:
    """One rung of the ladder: the units it drops, and the label that says so."""

    label: str
    drops: DropOrder


# The six of helmdeck ADR 050, in its order; then the members nobody has described to us.
STEPS: Final[tuple[LadderStep, ...]] = (
    LadderStep("pack.intent_keywords[]", DropOrder.PACK_KEYWORDS),
    LadderStep("pack.typical_use", DropOrder.PACK_TYPICAL_USE),
    LadderStep("pack.limitations[]", DropOrder.PACK_LIMITATIONS),
    LadderStep("pipeline.steps[].body", DropOrder.STEP_BODIES),
    LadderStep("pipeline.inputs/outputs.schema", DropOrder.SCHEMAS),
    LadderStep("description.firstSentence", DropOrder.DESCRIPTION),
    LadderStep("entry.extra", DropOrder.EXTRA),
)
# Beyond the ladder, in this order: unknown members of the catalog itself, whole entries, and
# what an entry shown in one line lacks besides.
CATALOG_EXTRA: Final = "catalog.extra"
TOP_N: Final = "lexical.top_n"
ONE_LINE: Final = "entry.one_line"

Saved = tuple[tuple[DropOrder, int], ...]


@dataclass(frozen=True, slots=True)
class View:
    """A set of shown units, the bytes of the entry so rendered, and what each step saved."""

    mask: int
    size: int
    saved: Saved


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """An entry with its units and the views that fitting starts from.

    `levels[k]` is the entry after the first k steps of the ladder (0 is everything);
    `one_line` shows the first sentence besides what is never dropped, `bare` only that.
    """

    entry: CatalogEntry
    detail: Detail
    cheapest: int  # no unit costs less
    levels: tuple[View, ...]
    one_line: View
    bare: View
    saved: Mapping[int, Saved]  # of the views above, by mask: what the receipt asks for most

    @property
    def full(self) -> View:
        """The view in which no unit is hidden."""
        return self.levels[0]


def lay_out(entry: CatalogEntry) -> Layout:
    """Measure an entry: its units, and the bytes of compact JSON that each of its views takes."""
    detail = take_apart(entry)
    dropped_by = {drop: _mask_of(detail, drop) for drop in DropOrder}
    shown = (1 << len(detail.units)) - 1
    levels = [_view(detail, shown)]
    for step in STEPS:
        shown &= ~dropped_by[step.drops]
        unchanged = shown == levels[-1].mask
        levels.append(levels[-1] if unchanged else _view(detail, shown))
    one_line, bare = _view(detail, detail.first_sentence), _view(detail, 0)
    return Layout(
        entry=entry,
        detail=detail,
        cheapest=min((unit.cost for unit in detail.units), default=0),
        levels=tuple(levels),
        one_line=one_line,
        bare=bare,
        saved={view.mask: view.saved for view in (*levels, one_line, bare)},
    )


def enrich(layout: Layout, mask: int, room: int) -> tuple[int, int]:
    """Show more units, the most useful first, while they fit into `room` bytes.

    Returns the new mask and the bytes used. Afterwards no hidden unit (whose needs are met)
    costs as little as the room that is left.
    """
    detail = layout.detail
    left = room
    for unit in detail.units:
        if mask & unit.bit or unit.needs & ~mask:
            continue
        price = unit.cost
        if not mask & unit.member_mask:
            price += unit.opening
            if unit.in_metadata and not mask & detail.metadata_mask:
                price += detail.metadata_opening
        # What is too dear now stays so: an opening that another unit pays leaves less room too.
        if price <= left:
            mask |= unit.bit
            left -= price
    return mask, room - left


def saved_by_step(detail: Detail, mask: int) -> Saved:
    """The bytes that each step saved on an entry of which only `mask` is shown.

    A member's own brackets count for the last step that took from it, likewise metadata's.
    """
    saved: dict[DropOrder, int] = {}
    closing: dict[int, tuple[DropOrder, int]] = {}
    last_in_metadata = -1
    for unit in detail.units:
        if mask & unit.bit:
            continue
        drop = unit.drop
        saved[drop] = saved.get(drop, 0) + unit.cost
        if unit.opening and not mask & unit.member_mask:
            before = closing.get(unit.member_mask)
            if before is None or drop > before[0]:
                closing[unit.member_mask] = (drop, unit.opening)
        if unit.in_metadata and drop > last_in_metadata:
            last_in_metadata = drop
    for drop, opening in closing.values():
        saved[drop] += opening
    if detail.metadata_opening and not mask & detail.metadata_mask:
        saved[DropOrder(last_in_metadata)] += detail.metadata_opening
    return tuple(saved.items())


def render(layout: Layout, mask: int) -> Mapping[str, object]:
    """The entry with the units of `mask`, its keys in the order given."""
    raw = layout.entry.raw
    if mask == layout.full.mask:
        return raw
    return _render_members(raw, layout.detail.members, mask)


def _mask_of(detail: Detail, drop: DropOrder) -> int:
    return sum(unit.bit for unit in detail.units if unit.drop is drop)


def _view(detail: Detail, mask: int) -> View:
    return View(mask, _size(detail, mask), saved_by_step(detail, mask))


def _size(detail: Detail, mask: int) -> int:
    shown = [unit for unit in detail.units if mask & unit.bit]
    openings = {unit.member_mask: unit.opening for unit in shown}
    size = detail.kept_bytes + sum(unit.cost for unit in shown) + sum(openings.values())
    return size + (detail.metadata_opening if mask & detail.metadata_mask else 0)


def _render_members(
    raw: Mapping[str, object], members: Iterable[DetailMember], mask: int
) -> dict[str, object]:
    shown: dict[str, object] = {}
    for member in members:
        if mask & member.mask == member.mask and (member.mask or member.shape is MemberShape.KEPT):
            shown[member.key] = raw[member.key]
        elif mask & member.mask or _keeps_some(member):
            shown[member.key] = _render_part(raw[member.key], member, mask)
    return shown


def _keeps_some(member: DetailMember) -> bool:
    return any(inner.shape is MemberShape.KEPT for inner in member.inner)


def _render_part(value: object, member: DetailMember, mask: int) -> object:
    match member.shape:
        case MemberShape.NESTED if isinstance(value, Mapping):
            return _render_members(value, member.inner, mask)
        case MemberShape.LIST if isinstance(value, list):
            return [item for item, bit in _slices_of(value, member, member.bits) if mask & bit]
        case MemberShape.TEXT if isinstance(value, str):
            ends = zip(member.ends, member.bits, strict=True)
            return value[: max(end for end, bit in ends if mask & bit)]
        case MemberShape.STEPS if isinstance(value, list):
            paired = _slices_of(value, member, member.bits[1:])
            return [step if not bit or mask & bit else slim_step(step) for step, bit in paired]
        case MemberShape.SCHEMA:
            return field_names(value)
        case _:
            return value


def _slices_of(
    items: list[object], member: DetailMember, bits: tuple[int, ...]
) -> Iterator[tuple[object, int]]:
    start = 0
    for end, bit in zip(member.ends, bits, strict=True):
        for item in items[start:end]:
            yield item, bit
        start = end
