"""What holds for the stream writers of all formats."""

from __future__ import annotations

import orjson
import pytest

from helmdash.providers import anthropic, gemini, ollama, openai
from helmdash.providers.protocols import ClientFormat, ReplyContext
from helmdash.providers.shared.collecting import events_of
from helmdash.providers.wire import (
    ChatRequest,
    Event,
    Finished,
    ReasoningDelta,
    RefusalDelta,
    Reply,
    Started,
    Text,
    TextDelta,
    ToolCallDelta,
    ToolCallStarted,
    UsageSeen,
)

ANSWER = ReplyContext(call_id="0198c0de", model="m", created=1_700_000_000)
REQUEST = ChatRequest(model="m", messages=())
ADAPTERS: list[ClientFormat] = [
    anthropic.CLIENT,
    gemini.CLIENT,
    ollama.CLIENT,
    ollama.GENERATE_CLIENT,
    openai.CLIENT,
]
EVERY_FORMAT = pytest.mark.parametrize(
    "client_format", ADAPTERS, ids=["anthropic", "gemini", "ollama", "ollama-generate", "openai"]
)


def stream(client_format: ClientFormat, events: list[Event]) -> bytes:
    writer = client_format.stream_writer(answer=ANSWER, request=REQUEST)
    return b"".join(writer.write(event) for event in events) + writer.close()


def reasons_in(data: bytes) -> set[str | None]:
    """All that the stream says about why it ended."""
    found: set[str | None] = set()
    for line in data.splitlines():
        text = line.removeprefix(b"data: ")
        if text.startswith(b"{"):
            value = orjson.loads(text)
            found.add(value.get("done_reason"))
            found.add(value.get("delta", {}).get("stop_reason"))
            for choice in value.get("choices") or value.get("candidates") or ():
                found |= {choice.get("finish_reason"), choice.get("finishReason")}
    return found


@EVERY_FORMAT
# an empty 200, and text whose upstream did not say why it ended
@pytest.mark.parametrize("reply", [Reply(), Reply(id="r", parts=(Text(text="x"),))])
def test_no_finish_reason_is_made_up(client_format: ClientFormat, reply: Reply) -> None:
    data = stream(client_format, events_of(reply))

    assert reasons_in(data) <= {None}
    assert b"[DONE]" not in data


@EVERY_FORMAT
def test_a_finish_reason_that_was_given_is_told(client_format: ClientFormat) -> None:
    data = stream(client_format, events_of(Reply(parts=(Text(text="x"),), finish_reason="stop")))

    assert reasons_in(data) - {None} in ({"stop"}, {"STOP"}, {"end_turn"})


@EVERY_FORMAT
@pytest.mark.parametrize(
    "event",
    [
        Started(id="again", model="other"),
        ReasoningDelta(text="Hm", signature="s"),
        RefusalDelta(text="no"),
        ToolCallStarted(index=0, id="c", name="f"),
        ToolCallDelta(index=3, arguments="of no call"),
        Finished(reason="stop"),
        UsageSeen(usage={}),
    ],
)
def test_only_an_error_and_the_end_stop_a_writer(client_format: ClientFormat, event: Event) -> None:
    data = stream(
        client_format,
        [Started(id="r"), event, ToolCallDelta(index=0, arguments="{}"), TextDelta(text="later")],
    )

    assert b"later" in data
