"""An entry taken apart into units of detail, each with its cost in bytes of compact JSON.

A unit is the smallest piece worth showing alone: a sentence, an element of a list, the body of
a step, a member we know nothing about. `compaction` decides which are dropped, `selection`
which are shown. A member of an odd type is one unit, carried whole, never a failure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from helmdash.core.catalog.catalog import CatalogEntry, EntryKind
from helmdash.core.text.sentences import sentence_ends
from helmdash.core.text.tokens import json_bytes

# A list, text or crowd of unknown members is cut into at most this many units, so that an
# entry with 100,000 keywords costs no more to fit than one with 64.
MAX_UNITS: Final = 64


class DropOrder(IntEnum):
    """The steps by which units are dropped, the first one first."""

    PACK_KEYWORDS = 0
    PACK_TYPICAL_USE = 1
    PACK_LIMITATIONS = 2
    STEP_BODIES = 3
    SCHEMAS = 4
    DESCRIPTION = 5
    EXTRA = 6
    ONE_LINE = 7


class Worth(IntEnum):
    """What a reader who must choose a tool wants first: detail comes back in this order."""

    FIRST_SENTENCE = 0
    ACCEPTS = 1
    PRODUCES = 2
    DESCRIPTION = 3
    TYPICAL_USE = 4
    LIMITATIONS = 5
    FIELD_NAMES = 6
    STEPS = 7
    INTENT_KEYWORDS = 8
    SCHEMAS = 9
    STEP_BODIES = 10
    EXTRA = 11


class MemberShape(IntEnum):
    """How a member is rendered from the units of it that are shown."""

    KEPT = 0  # always shown, untouched
    WHOLE = 1  # all or nothing
    LIST = 2  # the elements shown, in their order
    TEXT = 3  # the first sentences
    STEPS = 4  # the steps slim, some with their bodies
    SCHEMA = 5  # the field names, or everything
    NESTED = 6  # the metadata object


@dataclass(frozen=True, slots=True)
class DetailUnit:
    """A smallest useful piece of detail.

    `cost` is in bytes, its comma included; `opening` is added while nothing else of the same
    member (`member_mask`) is shown. `needs` are the units that must be shown first.
    """

    bit: int
    cost: int
    needs: int
    member_mask: int
    opening: int
    in_metadata: bool
    drop: DropOrder
    worth: Worth


@dataclass(frozen=True, slots=True)
class DetailMember:
    """One key of an entry or of its metadata, and the bits of its units.

    `ends` are where each unit's slice of a list ends, or each sentence in characters. In STEPS
    the first of the `bits` stands for all the slim steps, the others for the slices' bodies
    (0 where a slice has none).
    """

    key: str
    shape: MemberShape
    mask: int = 0
    bits: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()
    inner: tuple[DetailMember, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """All units of one entry, in the order in which they come back."""

    members: tuple[DetailMember, ...]
    units: tuple[DetailUnit, ...]
    kept_bytes: int  # the entry without any unit
    first_sentence: int  # the bit of it, 0 where there is no description
    metadata_mask: int
    metadata_opening: int  # 0 where the metadata is shown anyway (it holds `supersedes`)


_KEPT_IN_ENTRY: Final = frozenset({"id", "name", "supersedes"})
_KEPT_IN_METADATA: Final = frozenset({"supersedes"})
_KEPT_IN_STEP: Final = frozenset({"id", "name", "pack"})
_PACK_DROPS: Final[Mapping[str, DropOrder]] = {
    "intent_keywords": DropOrder.PACK_KEYWORDS,
    "typical_use": DropOrder.PACK_TYPICAL_USE,
    "limitations": DropOrder.PACK_LIMITATIONS,
}
_LIST_WORTH: Final[Mapping[str, Worth]] = {
    "accepts": Worth.ACCEPTS,
    "produces": Worth.PRODUCES,
    "intent_keywords": Worth.INTENT_KEYWORDS,
    "limitations": Worth.LIMITATIONS,
}


def take_apart(entry: CatalogEntry) -> Detail:
    """The units of an entry and what each costs, in bytes of compact JSON."""
    return _Walk(entry.kind).of(entry.raw)


def slim_step(step: object) -> object:
    """A step without its body: only `id`, `name` and `pack` of an object, else the step as is."""
    if not isinstance(step, Mapping):
        return step
    return {key: value for key, value in step.items() if key in _KEPT_IN_STEP}


def field_names(schema: object) -> object:
    """An object as its keys, a list of objects as their names (helmdeck ADR 050); else as it is."""
    if isinstance(schema, Mapping):
        return list(schema)
    if not isinstance(schema, list):
        return schema
    names = [item.get("name") if isinstance(item, Mapping) else item for item in schema]
    return [name for name in names if isinstance(name, str)]


class _Walk:
    """Walks the members of one entry and collects their units."""

    def __init__(self, kind: EntryKind) -> None:
        self._kind = kind
        self._units: list[DetailUnit] = []
        self._kept_bytes = 1  # the opening brace; each member brings a comma or the closing one
        self._first_sentence = 0
        self._metadata_mask = 0
        self._metadata_opening = 0
        self._in_metadata = False

    def of(self, raw: Mapping[str, object]) -> Detail:
        members = self._members(raw)
        return Detail(
            members=members,
            units=tuple(sorted(self._units, key=lambda unit: (unit.worth, unit.bit))),
            kept_bytes=self._kept_bytes,
            first_sentence=self._first_sentence,
            metadata_mask=self._metadata_mask,
            metadata_opening=self._metadata_opening,
        )

    def _members(self, raw: Mapping[str, object]) -> tuple[DetailMember, ...]:
        found: dict[str, DetailMember] = {}
        unknown: list[str] = []
        for key, value in raw.items():
            member = self._member(key, value)
            if member is None:
                unknown.append(key)
            else:
                found[key] = member
        for start, end in _slices(len(unknown)):
            keys = unknown[start:end]
            cost = sum(_opening(key) + json_bytes(raw[key]) for key in keys)
            bit = self._add(cost, drop=DropOrder.EXTRA, worth=Worth.EXTRA)
            found.update((key, DetailMember(key, MemberShape.WHOLE, bit)) for key in keys)
        return tuple(found[key] for key in raw)

    def _member(self, key: str, value: object) -> DetailMember | None:
        """The member and its units; None where we know nothing about it."""
        if key in (_KEPT_IN_METADATA if self._in_metadata else _KEPT_IN_ENTRY):
            self._kept_bytes += _opening(key) + json_bytes(value)
            return DetailMember(key, MemberShape.KEPT)
        if self._in_metadata:
            return self._metadata_member(key, value)
        if key == "description" and isinstance(value, str) and value:
            return self._description(key, value)
        if key == "metadata" and isinstance(value, Mapping) and value:
            return self._metadata(key, value)
        return None

    def _metadata_member(self, key: str, value: object) -> DetailMember | None:
        drop = DropOrder.ONE_LINE
        if self._kind is EntryKind.PACK:
            drop = _PACK_DROPS.get(key, DropOrder.ONE_LINE)
        if key in _LIST_WORTH and isinstance(value, list):
            return self._list(key, value, drop)
        if key == "typical_use" and isinstance(value, str):
            return self._text(key, value, drop, Worth.TYPICAL_USE)
        if self._kind is EntryKind.PIPELINE:
            if key == "steps" and isinstance(value, list):
                return self._steps(key, value)
            if key in ("inputs", "outputs") and isinstance(value, (Mapping, list)):
                return self._schema(key, value)
        return None

    def _metadata(self, key: str, value: Mapping[str, object]) -> DetailMember:
        self._in_metadata = True
        kept_before, units_before = self._kept_bytes, len(self._units)
        inner = self._members(value)
        self._in_metadata = False
        opening = _opening(key) + 1  # and its opening brace
        self._metadata_mask = (1 << len(self._units)) - (1 << units_before)
        if self._kept_bytes > kept_before:
            self._kept_bytes += opening
        else:
            self._metadata_opening = opening
        return DetailMember(key, MemberShape.NESTED, self._metadata_mask, inner=inner)

    def _description(self, key: str, value: str) -> DetailMember:
        self._first_sentence = 1 << len(self._units)
        return self._text(key, value, DropOrder.DESCRIPTION, Worth.DESCRIPTION)

    def _text(self, key: str, value: str, drop: DropOrder, worth: Worth) -> DetailMember:
        ends = _thin_out(sentence_ends(value) or (0,))
        mask = _bits(len(self._units), len(ends))
        opening = _opening(key) + 2  # and its quotes
        start = needs = 0
        for end in ends:
            is_first = worth is Worth.DESCRIPTION and not needs
            needs |= self._add(
                json_bytes(value[start:end]) - 2,
                member_mask=mask,
                opening=opening,
                needs=needs,
                drop=DropOrder.ONE_LINE if is_first else drop,
                worth=Worth.FIRST_SENTENCE if is_first else worth,
            )
            start = end
        return DetailMember(key, MemberShape.TEXT, mask, _each_bit(mask), ends)

    def _list(self, key: str, value: list[object], drop: DropOrder) -> DetailMember:
        worth = _LIST_WORTH[key]
        if not value:
            return self._whole(key, value, drop, worth)
        slices = _slices(len(value))
        mask = _bits(len(self._units), len(slices))
        for start, end in slices:
            cost = sum(json_bytes(item) + 1 for item in value[start:end])
            opening = _opening(key) + 1  # and its opening bracket
            self._add(cost, member_mask=mask, opening=opening, drop=drop, worth=worth)
        return DetailMember(
            key, MemberShape.LIST, mask, _each_bit(mask), tuple(end for _, end in slices)
        )

    def _steps(self, key: str, value: list[object]) -> DetailMember:
        slim = [slim_step(step) for step in value]
        first = self._add(
            _opening(key) + json_bytes(slim), drop=DropOrder.ONE_LINE, worth=Worth.STEPS
        )
        mask, bits, slices = first, [first], _slices(len(value))
        for start, end in slices:
            body = json_bytes(value[start:end]) - json_bytes(slim[start:end])
            bit = 0
            if body:
                bit = self._add(
                    body, needs=first, drop=DropOrder.STEP_BODIES, worth=Worth.STEP_BODIES
                )
            bits.append(bit)
            mask |= bit
        return DetailMember(
            key, MemberShape.STEPS, mask, tuple(bits), tuple(end for _, end in slices)
        )

    def _schema(self, key: str, value: object) -> DetailMember:
        names = json_bytes(field_names(value))
        cost = _opening(key) + names
        bit = self._add(cost, drop=DropOrder.ONE_LINE, worth=Worth.FIELD_NAMES)
        rest = json_bytes(value) - names
        if not rest:
            return DetailMember(key, MemberShape.WHOLE, bit)
        full = self._add(rest, needs=bit, drop=DropOrder.SCHEMAS, worth=Worth.SCHEMAS)
        return DetailMember(key, MemberShape.SCHEMA, bit | full)

    def _whole(self, key: str, value: object, drop: DropOrder, worth: Worth) -> DetailMember:
        bit = self._add(_opening(key) + json_bytes(value), drop=drop, worth=worth)
        return DetailMember(key, MemberShape.WHOLE, bit)

    def _add(
        self,
        cost: int,
        *,
        drop: DropOrder,
        worth: Worth,
        needs: int = 0,
        member_mask: int = 0,
        opening: int = 0,
    ) -> int:
        bit = 1 << len(self._units)
        mask = member_mask or bit
        self._units.append(
            DetailUnit(bit, cost, needs, mask, opening, self._in_metadata, drop, worth)
        )
        return bit


def _opening(key: str) -> int:
    """The bytes of a member around its value: the key, a colon, a comma (or closing brace)."""
    return json_bytes(str(key)) + 2


def _slices(count: int) -> list[tuple[int, int]]:
    """Neighbours put together: at most MAX_UNITS slices (start, end), all of one length."""
    width = -(-count // MAX_UNITS) or 1
    return [(start, min(start + width, count)) for start in range(0, count, width)]


def _thin_out(ends: Sequence[int]) -> tuple[int, ...]:
    """At most MAX_UNITS of the ends: always the first and the last."""
    return (ends[0], *(ends[end] for _, end in _slices(len(ends) - 1)))


def _bits(first: int, count: int) -> int:
    return (1 << (first + count)) - (1 << first)


def _each_bit(mask: int) -> tuple[int, ...]:
    return tuple(1 << at for at in range(mask.bit_length()) if mask >> at & 1)
