"""Net values in words: in tables, and at the markers of a curve."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from helmdash.core.evidence.net_value import Shortening
from helmdash.pages.parts import words
from helmdash.queries.evidence.shortened import NetPart, Shortened

_KINDS = {
    Shortening.TRIM: "Trim",
    Shortening.CLEAR: "clear",
    Shortening.COMPACTION: "the client's compaction",
}

# Some of what a sum counts.
PART_WORDS = {
    NetPart.SAVED_UNKNOWN: "those of which nobody knows what was saved",
    NetPart.REBILLED_UNKNOWN: "those of which nobody knows what was re-billed",
    NetPart.NET_UNKNOWN: "those whose net value in tokens is unknown",
    NetPart.USD_UNKNOWN: "those whose net value in USD is unknown",
    NetPart.MAY_HAVE_EXPIRED: "those whose cache may have expired by itself",
    NetPart.TOO_EARLY: "those that came too early",
    NetPart.WINDOW_UNKNOWN: "those of which nobody knows whether they came too early",
    NetPart.TOO_LATE: "those that came too late",
}


def kind_words(kind: Shortening | str) -> str:
    """What shortened the prompt."""
    return _KINDS[Shortening(kind)]


def signed_dollars(amount: float) -> str:
    """USD with a sign: +1.26, -0.072."""
    sign = "\N{MINUS SIGN}" if amount < 0 else "+"
    return f"{sign}{words.dollars(abs(amount))}"


def why_no_net(each: Shortened) -> str:
    """Why its net value is not known; "" where it is."""
    value = each.value
    if value.net_tokens is not None:
        return ""
    if each.after is None:
        return "no call came since"
    if each.before is None:
        return "no call before it to compare with"
    if value.saved_tokens is None:
        return (
            "bytes sent or tokens not reported"
            if each.kind is Shortening.TRIM
            else "tokens not reported"
        )
    if value.held_tokens is None or value.rebilled_tokens is None:
        return "cache not reported, or of another model"
    return "tokens of the summary not reported"


def marker_notes(found: Iterable[Shortened]) -> Mapping[int, str]:
    """What stands at the marker of each fresh start, by the number of the round it opened."""
    return {each.round_number: _note(each) for each in found if each.round_number is not None}


def _note(each: Shortened) -> str:
    value = each.value
    if value.net_tokens is None:
        return f"net value unknown: {why_no_net(each)}"
    said = f"net {words.signed(value.net_tokens)} tokens"
    if value.net_usd is not None:
        said += f", {signed_dollars(value.net_usd)} USD"
    if each.is_too_late:
        return f"{said}; too late"
    return f"{said}; too early" if each.is_too_early else said
