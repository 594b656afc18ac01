"""Streams of the Responses API, written for a client.

In the order that the SDKs and Codex build on: a response is created, then each item is added, its
parts come in deltas, and it is done, one item after the other; the last event holds all of them.
"""

from __future__ import annotations

from typing import assert_never

from helmdash.core.calls.finish import FinishReason, normalise_finish_reason
from helmdash.providers.openai_responses.errors import response_error
from helmdash.providers.openai_responses.items.open_items import (
    Announce,
    OpenCall,
    OpenItem,
    OpenMessage,
    OpenReasoning,
    PartKind,
    is_whole_json,
)
from helmdash.providers.openai_responses.usage import write_usage
from helmdash.providers.protocols import ReplyContext
from helmdash.providers.shared.bodies import to_json
from helmdash.providers.wire import (
    ContextEdited,
    Ended,
    Event,
    Failed,
    Finished,
    Json,
    MediaSeen,
    Object,
    ReasoningDelta,
    RefusalDelta,
    Started,
    TextDelta,
    ToolCallDelta,
    ToolCallStarted,
    ToolOrigin,
    UsageSeen,
    WireError,
)

_LENGTH, _FILTER = "max_output_tokens", "content_filter"


class ResponsesStreamWriter:
    """Events to a stream as OpenAI would send it. `response` is what has been told so far.

    The last event waits for the usage, which follows the reason of the end. Nothing comes after it,
    nor after an error.
    """

    def __init__(self, *, answer: ReplyContext) -> None:
        self._number = 0
        self._stem = answer.call_id.removeprefix("call_")
        request = answer.request
        tools = request.tools if request is not None else ()
        self._origins: dict[str, ToolOrigin] = {
            tool.name: tool.origin for tool in tools if tool.origin is not None
        }
        self._item: OpenItem | None = None
        self._waiting: dict[int, OpenCall] = {}  # calls begun while another is open
        self._finish: str | None = None
        self._usage: Object | None = None
        self._has_refused = False
        self._has_begun = False
        self._is_over = False
        self._output: list[dict[str, Json]] = []
        self.response: dict[str, Json] = {
            "id": f"resp_{self._stem}",
            "object": "response",
            "created_at": answer.created,
            "status": "in_progress",
            "background": False,
            "error": None,
            "incomplete_details": None,
            "model": answer.model,
            "output": [],
            "previous_response_id": None,
            "store": False,
            "truncation": "disabled",
            "usage": None,
            **(request.repeated if request is not None else {}),
        }

    def write(self, event: Event) -> bytes:
        """The bytes for one event; none for one that waits or says nothing here."""
        if self._is_over:
            return b""
        match event:
            case TextDelta(text=text):
                return self._say(PartKind.TEXT, text)
            case RefusalDelta(text=text):
                self._has_refused = True
                return self._say(PartKind.REFUSAL, text)
            case ReasoningDelta():
                return self._think(event)
            case ToolCallStarted():
                return self._start_call(event)
            case ToolCallDelta(index=index, arguments=arguments):
                return self._add_arguments(index, arguments)
            case Started(model=model):
                return self._begin(model)
            case Finished(reason=reason):
                self._finish = self._finish or reason
                return b""
            case UsageSeen(usage=usage):
                self._usage = usage
                return b""
            case Failed(error=error):
                return self._begin() + self._end("failed", error=error)
            case Ended():
                self._finish = self._finish or "completed"
                return self.close()
            case ContextEdited() | MediaSeen():
                return b""  # no word for it here; the record keeps it
            case _:
                assert_never(event)

    def close(self) -> bytes:
        """The last event.

        None where the upstream gave neither a reason nor an end mark: that reply was cut off, and
        a client that sees no last event takes it for that.
        """
        if self._is_over or self._finish is None:
            return b""
        reason = normalise_finish_reason(self._finish)
        match reason:
            case FinishReason.LENGTH:
                end = self._end("incomplete", reason=_LENGTH)
            case FinishReason.CONTENT_FILTER:
                end = self._end("incomplete", reason=_FILTER)
            case FinishReason.REFUSAL if not self._has_refused:
                end = self._end("incomplete", reason=_FILTER)
            case FinishReason.ERROR:
                said = f"The upstream ended its reply with {self._finish}."
                end = self._end("failed", error=WireError(message=said))
            case _:
                end = self._end("completed")
        return end

    def _begin(self, model: str | None = None) -> bytes:
        if self._has_begun:
            return b""
        self._has_begun = True
        if model is not None:
            self.response["model"] = model
        return self._tell("response.created", response=self.response) + self._tell(
            "response.in_progress", response=self.response
        )

    def _say(self, kind: PartKind, text: str) -> bytes:
        opening = self._begin()
        if not isinstance(self._item, OpenMessage):
            opening += self._open(OpenMessage())
        assert isinstance(self._item, OpenMessage)
        return opening + self._item.add(kind, text, self._announce)

    def _think(self, event: ReasoningDelta) -> bytes:
        opening = self._begin()
        if not isinstance(self._item, OpenReasoning):
            opening += self._open(OpenReasoning())
        assert isinstance(self._item, OpenReasoning)
        return opening + self._item.add(event.text, event.signature, self._announce)

    def _start_call(self, event: ToolCallStarted) -> bytes:
        opening = self._begin()
        call = OpenCall(event, self._origins.get(event.name))
        if isinstance(self._item, OpenCall) and not is_whole_json(self._item.arguments):
            # Calls may come side by side; a client is told of one after the other.
            self._waiting[event.index] = call
            return opening
        return opening + self._open(call)

    def _add_arguments(self, index: int, arguments: str) -> bytes:
        waiting = self._waiting.get(index)
        if waiting is not None:
            waiting.arguments += arguments
            return b""
        if isinstance(self._item, OpenCall) and self._item.index == index:
            return self._item.add(arguments, self._announce)
        return b""

    def _open(self, item: OpenItem) -> bytes:
        """Begin an item, once the one before it is done."""
        closing = self._close_item("completed")
        self._item = item
        item.stem = self._next_stem()
        return closing + item.open(self._announce)

    def _close_item(self, status: str) -> bytes:
        """End the item that is open, and those that wait behind it.

        Clients act on an item as soon as it is done: a call that broke off is never told as one.
        """
        closing = b""
        waiting = [self._waiting.pop(index) for index in sorted(self._waiting)]
        if self._item is not None and not self._is_broken(self._item, status):
            closing, item = self._item.close(status, self._announce)
            self._output.append(item)
        self._item = None
        for call in waiting:
            if not self._is_broken(call, status):
                call.stem = self._next_stem()
                opening = call.open(self._announce)
                ending, item = call.close(status, self._announce)
                closing += opening + ending
                self._output.append(item)
        return closing

    @staticmethod
    def _is_broken(item: OpenItem, status: str) -> bool:
        return (
            status != "completed"
            and isinstance(item, OpenCall)
            and not is_whole_json(item.arguments)
        )

    def _end(
        self, status: str, *, reason: str | None = None, error: WireError | None = None
    ) -> bytes:
        closing = self._begin()
        if status == "failed":
            self._item, self._waiting = None, {}  # the client will ask for all of it again
        else:
            closing += self._close_item(status)
        self._is_over = True
        self.response |= {"status": status, "output": self._output}
        if reason is not None:
            self.response["incomplete_details"] = {"reason": reason}
        if error is not None:
            self.response["error"] = response_error(error)
        if status == "completed":
            self.response["completed_at"] = self.response["created_at"]
        self.response["usage"] = write_usage(self._usage)
        return closing + self._tell(f"response.{status}", response=self.response)

    def _next_stem(self) -> str:
        """What makes the id of the next item; its number follows those that are done."""
        return f"{self._stem}_{len(self._output)}"

    @property
    def _announce(self) -> Announce:
        index = len(self._output)
        return lambda kind, **members: self._tell(kind, output_index=index, **members)

    def _tell(self, kind: str, **members: Json) -> bytes:
        told = {"type": kind, "sequence_number": self._number, **members}
        self._number += 1
        return b"event: %s\ndata: %s\n\n" % (kind.encode(), to_json(told))
