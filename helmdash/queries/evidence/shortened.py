"""Shortened prompts with their net value, as they are told, and sums of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final, NamedTuple

from helmdash.answers import BLANK_IS_NULL, Doc, answer
from helmdash.core.calls.outcomes import CallOutcome
from helmdash.core.evidence import net_value as core
from helmdash.core.evidence.net_value import NetValue, Shortening, TokenSum, UsdSum
from helmdash.core.evidence.suggested import Counted


@answer("CallBeside")
@dataclass(frozen=True, slots=True, kw_only=True)
class CallBeside:
    """A call that a net value was made from, with what its provider reported."""

    id: str
    at: datetime
    prompt_tokens: int | None
    cached_tokens: int | None
    cache_write_tokens: int | None
    completion_tokens: int | None
    outcome: CallOutcome


@answer("ShortenedPrompt")
@dataclass(frozen=True, slots=True, kw_only=True)
class Shortened:
    """One Trim, clear or compaction, and what it came to."""

    kind: Shortening
    at: datetime
    model: str
    model_key: str
    conversation: Annotated[str, BLANK_IS_NULL]
    round_number: Annotated[int | None, Doc("The round that it opened. Null: a Trim.")]
    fit_id: Annotated[str, BLANK_IS_NULL, Doc("Of a Trim, where the call names one.")]
    saved_bytes: Annotated[int | None, Doc("Of a Trim.")]
    before: Annotated[
        CallBeside | None, Doc("The main call before it that reported its prompt. Null: none did.")
    ]
    after: Annotated[CallBeside | None, Doc("The first call with the shorter prompt.")]
    making: Annotated[CallBeside | None, Doc("The call that wrote the summary, if one is known.")]
    value: NetValue
    window_tokens: Annotated[int | None, Doc("As far as is known today.")]
    share_of_window: Annotated[float | None, Doc("How much of it the prompt before filled.")]
    is_too_early: Annotated[bool | None, Doc("Below half of the window. Null: unknown, or a Trim.")]
    is_too_late: Annotated[
        bool | None,
        Doc("One of five calls before was refused for its length or probably cut. Null: a Trim."),
    ]
    may_have_expired: Annotated[
        bool | None,
        Doc("So long after the call before that its cache may have been gone anyway."),
    ]
    clean_before: Annotated[Counted, Doc("Of the five main calls before.")]
    clean_after: Annotated[Counted, Doc("Of the first five main calls with it.")]
    next_after_calls: Annotated[
        int | None, Doc("Main calls until the next fresh start. Null: none came yet, or a Trim.")
    ]


class Side(NamedTuple):
    """A call beside a shortened prompt: when, and whether it was clean."""

    at: datetime
    is_clean: bool


class Found(NamedTuple):
    """One of them, and the calls before and after it by their names: those that sums count, and
    before it those that its own share counts."""

    told: Shortened
    before: Mapping[str, Side]
    after: Mapping[str, Side]
    own_before: Mapping[str, Side]


class NetPart(StrEnum):
    """Some of what a sum counts: those that something is not known of, or that something is true
    of."""

    SAVED_UNKNOWN = "saved_unknown"
    REBILLED_UNKNOWN = "rebilled_unknown"
    NET_UNKNOWN = "net_unknown"
    USD_UNKNOWN = "usd_unknown"
    MAY_HAVE_EXPIRED = "may_have_expired"
    TOO_EARLY = "too_early"
    WINDOW_UNKNOWN = "window_unknown"
    TOO_LATE = "too_late"


IS_PART: Final[Mapping[NetPart, Callable[[Shortened], bool]]] = {
    NetPart.SAVED_UNKNOWN: lambda each: each.value.saved_tokens is None,
    NetPart.REBILLED_UNKNOWN: lambda each: each.value.rebilled_tokens is None,
    NetPart.NET_UNKNOWN: lambda each: each.value.net_tokens is None,
    NetPart.USD_UNKNOWN: lambda each: each.value.net_usd is None,
    NetPart.MAY_HAVE_EXPIRED: lambda each: each.may_have_expired is True,
    NetPart.TOO_EARLY: lambda each: each.is_too_early is True,
    NetPart.WINDOW_UNKNOWN: lambda each: (
        each.kind is not Shortening.TRIM and each.is_too_early is None
    ),
    NetPart.TOO_LATE: lambda each: each.is_too_late is True,
}


@answer("NetSums")
@dataclass(frozen=True, slots=True, kw_only=True)
class NetSums:
    """Some of them together. name: of the kind, or of the model; "": all."""

    name: Annotated[str, BLANK_IS_NULL]
    count: int
    saved_tokens: TokenSum
    rebilled_tokens: TokenSum
    making_tokens: Annotated[TokenSum, Doc("unknown: compactions whose summary no call tells of.")]
    net_tokens: TokenSum
    net_usd: UsdSum
    may_have_expired: int
    too_early: Annotated[int, Doc("Of clears and compactions.")]
    window_unknown: Annotated[int, Doc("Clears and compactions of which that is not known.")]
    too_late: int
    clean_before: Annotated[
        Counted, Doc("Each call once; before a Trim only those that nothing was cut for.")
    ]
    clean_after: Annotated[Counted, Doc("Each call once.")]


@answer("NetReport")
@dataclass(frozen=True, slots=True, kw_only=True)
class NetReport:
    """What shortened prompts of a range came to, newest first.

    items may be fewer than were added up. first_at: of the oldest that was read. models: those with
    the most, at most twenty.
    """

    method: str
    items: tuple[Shortened, ...]
    all: NetSums
    kinds: tuple[NetSums, ...]
    models: tuple[NetSums, ...]
    is_sample: Annotated[
        bool, Doc("The range has more: these are the newest 200 of Trims and of fresh starts.")
    ]
    first_at: datetime | None


def sums_by(found: Sequence[Found], name: Callable[[Shortened], str]) -> tuple[NetSums, ...]:
    """Sums of each group of them, by its name, the largest group first."""
    groups: dict[str, list[Found]] = {}
    for each in found:
        groups.setdefault(name(each.told), []).append(each)
    each_sums = [sums(group, items) for group, items in groups.items()]
    return tuple(sorted(each_sums, key=lambda each: (-each.count, each.name)))


def sums(name: str, found: Sequence[Found]) -> NetSums:
    """All of them added up; a call that is beside several counts once."""
    items = [each.told for each in found]
    values = [each.value for each in items]
    compacted = [each.value for each in items if each.kind is Shortening.COMPACTION]
    return NetSums(
        name=name,
        count=len(items),
        saved_tokens=core.sum_of_tokens(each.saved_tokens for each in values),
        rebilled_tokens=core.sum_of_tokens(each.rebilled_tokens for each in values),
        making_tokens=core.sum_of_tokens(each.making_tokens for each in compacted),
        net_tokens=core.sum_of_tokens(each.net_tokens for each in values),
        net_usd=core.sum_of_usd(each.net_usd for each in values),
        may_have_expired=_count(items, NetPart.MAY_HAVE_EXPIRED),
        too_early=_count(items, NetPart.TOO_EARLY),
        window_unknown=_count(items, NetPart.WINDOW_UNKNOWN),
        too_late=_count(items, NetPart.TOO_LATE),
        clean_before=_distinct(each.before for each in found),
        clean_after=_distinct(each.after for each in found),
    )


def _count(items: Iterable[Shortened], part: NetPart) -> int:
    return sum(map(IS_PART[part], items))


def _distinct(beside: Iterable[Mapping[str, Side]]) -> Counted:
    calls = {name: side.is_clean for each in beside for name, side in each.items()}
    return Counted(calls=len(calls), clean=sum(calls.values()))
