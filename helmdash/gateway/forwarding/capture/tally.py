"""What a stream has told so far, for the record."""

from __future__ import annotations

from collections.abc import Iterable
from time import perf_counter_ns

from helmdash.gateway.requests.exchange import Exchange
from helmdash.providers.shared.collecting import Collector
from helmdash.providers.wire import (
    Event,
    MediaSeen,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    ToolCallStarted,
    WireError,
)

_CONTENT = (TextDelta, ReasoningDelta, RefusalDelta, ToolCallStarted, MediaSeen)
_BROKEN_OFF = WireError(
    message="The upstream ended its stream without a finish reason.", code="closed_early"
)


class StreamTally:
    """Collects the events of one stream into its exchange."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._collector = exchange.collector = Collector()

    @property
    def has_ended(self) -> bool:
        """The upstream's own end mark has come; some send more after it."""
        return self._collector.has_ended

    def take(self, events: Iterable[Event], *, is_last: bool) -> None:
        """Note the next events. is_last: there are no more."""
        exchange = self._exchange
        for event in events:
            self._collector.add(event)
            if exchange.first_ns is None and isinstance(event, _CONTENT):
                exchange.first_ns = perf_counter_ns()
        if is_last and self._is_broken_off():
            exchange.fail(_BROKEN_OFF)

    def _is_broken_off(self) -> bool:
        """Something came, and neither an end nor a reason for it. (Nothing at all is another
        cause.)"""
        told = self._collector
        has_end = told.has_ended or told.finish_reason is not None
        return (told.has_visible or told.has_reasoning) and not has_end and told.error is None
