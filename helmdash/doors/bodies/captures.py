"""A reported call as core.Capture: the hot path of recording."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from helmdash.core.calls.capture import Capture, CapturedTrim, SentSizes
from helmdash.core.calls.composition import Composition, largest_results
from helmdash.core.calls.lanes import Lane
from helmdash.core.calls.routes import CallRoute
from helmdash.doors.bodies.reports import CallIn, ClientIn, CompositionIn, SentIn, TrimIn


def to_capture(
    call: CallIn, *, route: CallRoute, caller: str | None = None, at: datetime | None = None
) -> Capture:
    """The report as a value. Null and blank words say as little as missing ones.

    route: the door it came by, if the report does not say how the call became known. caller, at:
    who made the call and when it began, where the report does not say; None: it stays untold.
    """
    given: dict[str, Any] = {
        name: value
        for name, value in call.items()
        if value is not None and (value != "" or name in _MEANT_WHEN_EMPTY)
    }
    for name in _MILLISECONDS:
        if name in given:
            given[name] = round(given[name])
    if "round" in given:
        given["round_number"] = given.pop("round")
    for name, convert in _CONVERSIONS:
        if name in given:
            given[name] = convert(given[name])
    told = given.pop("route", None)
    given["routes"] = (CallRoute(told) if told else route,)
    given.setdefault("caller", caller)
    given.setdefault("started_at", at)
    if "client" in given:
        given |= _client(given.pop("client"))
    return Capture(**given)


def _client(client: ClientIn) -> dict[str, str | None]:
    """Names are compared in small letters, as those of the gateway are."""
    name = client["name"].strip().lower()
    return {"client_name": name, "client_version": client.get("version") or None} if name else {}


def _trim(trim: TrimIn) -> CapturedTrim:
    return CapturedTrim(
        before_bytes=trim["before_bytes"],
        after_bytes=trim["after_bytes"],
        dropped=tuple(trim.get("dropped") or ()),
    )


def _composition(told: CompositionIn) -> Composition:
    return Composition(
        system=told.get("system"),
        tools=told.get("tools"),
        user=told.get("user"),
        assistant=told.get("assistant"),
        tool_results=told.get("tool_results"),
        images=told.get("images"),
        other=told.get("other"),
        results_by_tool=largest_results(told.get("results_by_tool") or {}),
    )


def _sent(sent: SentIn) -> SentSizes:
    return SentSizes(
        bytes=sent.get("bytes"),
        messages=sent.get("messages"),
        tools_bytes=sent.get("tools_bytes"),
        images=sent.get("images"),
    )


# An answer without a letter is an answer.
_MEANT_WHEN_EMPTY = frozenset({"content"})
_MILLISECONDS = ("latency_ms", "ttft_ms", "overhead_ms")
_CONVERSIONS: tuple[tuple[str, Callable[[Any], object]], ...] = (
    ("trim", _trim),
    ("sent", _sent),
    ("composition", _composition),
    ("lane", Lane),
    ("messages", tuple),
    ("attempts", tuple),
)
