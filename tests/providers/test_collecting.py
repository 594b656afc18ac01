"""Events put together to a reply, within bounds."""

from __future__ import annotations

import pytest

from helmdash.providers.shared.collecting import Collector, collect, events_of
from helmdash.providers.wire import (
    Ended,
    Event,
    Failed,
    Finished,
    Reasoning,
    ReasoningDelta,
    RefusalDelta,
    Reply,
    Started,
    Text,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallStarted,
    UsageSeen,
    WireError,
)


def test_events_make_one_reply() -> None:
    error = WireError(message="late")

    reply = collect(
        [
            Started(id="r", model="m"),
            ReasoningDelta(text="a"),
            ReasoningDelta(text="b", signature="seal"),
            TextDelta(text="x"),
            TextDelta(text="y"),
            ToolCallStarted(index=0, id="c0", name="f"),
            ToolCallStarted(index=1, id="c1", name="g"),
            ToolCallDelta(index=1, arguments="{"),
            ToolCallDelta(index=0, arguments="[]"),
            ToolCallDelta(index=1, arguments="}"),
            Finished(reason="stop"),
            UsageSeen(usage={"prompt_tokens": 1}),
            UsageSeen(usage={"prompt_tokens": 2}),
            Failed(error=error),
            Failed(error=WireError(message="later")),
            Ended(),
        ]
    )

    assert reply == Reply(
        id="r",
        model="m",
        parts=(
            Reasoning(text="ab", signature="seal"),
            Text(text="xy"),
            ToolCall(id="c0", name="f", arguments="[]"),
            ToolCall(id="c1", name="g", arguments="{}"),
        ),
        finish_reason="stop",
        usage={"prompt_tokens": 2},
        error=error,
    )


def test_nothing_makes_an_empty_reply() -> None:
    assert collect([]) == Reply()


@pytest.mark.parametrize(
    ("event", "is_visible"),
    [
        (TextDelta(text="x"), True),
        (ToolCallStarted(index=0, id="c", name="f"), True),
        (RefusalDelta(text="no"), True),
        (TextDelta(text=""), False),
        (ReasoningDelta(text="hm"), False),
        (Finished(reason="stop"), False),
    ],
)
def test_text_calls_and_refusals_are_visible(event: Event, is_visible: bool) -> None:
    collector = Collector()

    collector.add(event)

    assert collector.has_visible is is_visible
    assert not collector.has_ended


def test_what_is_over_the_limit_is_counted_but_not_kept() -> None:
    collector = Collector(largest_bytes=5)

    collector.add_all([TextDelta(text="ab"), TextDelta(text="cü€"), TextDelta(text="d")])

    assert collector.text_bytes == 9
    assert collector.reply().text == "abcü"  # the euro sign would be cut in two
    assert collector.is_cut


def test_calls_share_one_limit() -> None:
    collector = Collector(largest_bytes=1000)

    for index in range(100):
        collector.add(ToolCallStarted(index=index, id="c", name="f"))
        collector.add(ToolCallDelta(index=index, arguments="x" * 100))

    calls = collector.reply().tool_calls
    assert 0 < len(calls) < 10
    assert sum(len(call.arguments) for call in calls) < 1000
    assert collector.is_cut


def test_arguments_of_a_call_nobody_started_are_dropped() -> None:
    assert collect([ToolCallDelta(index=3, arguments="{}")]) == Reply()


def test_a_whole_reply_gives_the_events_that_make_it_again() -> None:
    reply = Reply(id="r", parts=(Text(text="x"),), finish_reason="stop", usage={"a": 1})

    events = events_of(reply)

    assert collect(events) == reply
    assert events[-1] == Ended()


# An empty 200, and a reply whose upstream did not say why it ended.
@pytest.mark.parametrize("reply", [Reply(), Reply(id="r", parts=(Text(text="x"),))])
def test_a_reply_without_a_finish_reason_is_not_said_to_have_ended(reply: Reply) -> None:
    assert Ended() not in events_of(reply)
