"""Items of a response while they are streamed: the events that open, fill and close each."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from helmdash.providers.openai_responses.items.calls import (
    BUILT_IN,
    CUSTOM,
    FUNCTION,
    custom_input,
    item_of,
)
from helmdash.providers.openai_responses.items.reasoning import reasoning_item
from helmdash.providers.shared.bodies import read_json
from helmdash.providers.wire import Json, ToolCall, ToolCallStarted, ToolOrigin


class Announce(Protocol):
    """Writes one event about the item that is open."""

    def __call__(self, kind: str, **members: Json) -> bytes: ...


class OpenItem(Protocol):
    """An item that is not done. `stem`: what makes its id, once it is its turn."""

    stem: str

    def open(self, announce: Announce) -> bytes:
        """The event by which it is added."""

    def close(self, status: str, announce: Announce) -> tuple[bytes, dict[str, Json]]:
        """The events that end it, and the item as it stays in the response."""


class PartKind(StrEnum):
    """What a message says, by the type of its part."""

    TEXT = "output_text"
    REFUSAL = "refusal"


class OpenMessage:
    """A message: texts and refusals, a part for each run of them."""

    def __init__(self) -> None:
        self.stem = ""
        self._parts: list[dict[str, Json]] = []
        self._kind: PartKind | None = None
        self._pieces: list[str] = []

    def open(self, announce: Announce) -> bytes:
        return announce("response.output_item.added", item=self._item("in_progress"))

    def add(self, kind: PartKind, text: str, announce: Announce) -> bytes:
        """More of a text or a refusal; another kind than before begins another part."""
        opening = b""
        if kind is not self._kind:
            opening = self._close_part(announce)
            self._kind = kind
            opening += announce(
                "response.content_part.added", **self._place(), part=_part(kind, "")
            )
        self._pieces.append(text)
        if kind is PartKind.REFUSAL:
            return opening + announce("response.refusal.delta", **self._place(), delta=text)
        return opening + announce(
            "response.output_text.delta", **self._place(), delta=text, logprobs=[]
        )

    def close(self, status: str, announce: Announce) -> tuple[bytes, dict[str, Json]]:
        closing = self._close_part(announce)
        item = self._item(status)
        return closing + announce("response.output_item.done", item=item), item

    def _close_part(self, announce: Announce) -> bytes:
        if self._kind is None:
            return b""
        text = "".join(self._pieces)
        part = _part(self._kind, text)
        if self._kind is PartKind.REFUSAL:
            closing = announce("response.refusal.done", **self._place(), refusal=text)
        else:
            closing = announce("response.output_text.done", **self._place(), text=text, logprobs=[])
        closing += announce("response.content_part.done", **self._place(), part=part)
        self._parts.append(part)
        self._kind, self._pieces = None, []
        return closing

    def _place(self) -> dict[str, Json]:
        return {"item_id": f"msg_{self.stem}", "content_index": len(self._parts)}

    def _item(self, status: str) -> dict[str, Json]:
        return {
            "id": f"msg_{self.stem}",
            "type": "message",
            "status": status,
            "role": "assistant",
            "content": list(self._parts),
        }


class OpenReasoning:
    """The model's thoughts, as a summary of one part: what clients show."""

    def __init__(self) -> None:
        self.stem = ""
        self._pieces: list[str] = []
        self._signature: str | None = None

    def open(self, announce: Announce) -> bytes:
        return announce("response.output_item.added", item=self._item("in_progress", text=""))

    def add(self, text: str, signature: str | None, announce: Announce) -> bytes:
        """More of it; signature None: not told with this piece."""
        self._signature = signature or self._signature
        if not text:
            return b""
        opening = b""
        if not self._pieces:
            opening = announce(
                "response.reasoning_summary_part.added", **self._place(), part=_summary("")
            )
        self._pieces.append(text)
        return opening + announce(
            "response.reasoning_summary_text.delta", **self._place(), delta=text
        )

    def close(self, status: str, announce: Announce) -> tuple[bytes, dict[str, Json]]:
        text = "".join(self._pieces)
        closing = b""
        if text:
            closing = announce("response.reasoning_summary_text.done", **self._place(), text=text)
            closing += announce(
                "response.reasoning_summary_part.done", **self._place(), part=_summary(text)
            )
        item = self._item(status, text=text)
        return closing + announce("response.output_item.done", item=item), item

    def _place(self) -> dict[str, Json]:
        return {"item_id": f"rs_{self.stem}", "summary_index": 0}

    def _item(self, status: str, *, text: str) -> dict[str, Json]:
        return reasoning_item(text, self._signature, number=self.stem, status=status)


class OpenCall:
    """A call of a tool. Only arguments of functions are told in pieces: the input of a custom tool
    comes as a whole, and of a call of a built-in one nothing is told before."""

    def __init__(self, started: ToolCallStarted, origin: ToolOrigin | None) -> None:
        self.index = started.index
        self.arguments = ""
        self.stem = ""
        self._call_id, self._name = started.id, started.name
        self._origin = origin

    def open(self, announce: Announce) -> bytes:
        arguments, self.arguments = self.arguments, ""
        opening = b"" if self._is_built_in else self._added(announce)
        return opening + self.add(arguments, announce)

    def add(self, arguments: str, announce: Announce) -> bytes:
        """More of what the tool is given."""
        self.arguments += arguments
        if not arguments or self._kind != FUNCTION:
            return b""
        return announce("response.function_call_arguments.delta", item_id=self._id, delta=arguments)

    def close(self, status: str, announce: Announce) -> tuple[bytes, dict[str, Json]]:
        item, closing = self._item(status), b""
        if self._is_built_in:
            closing = self._added(announce)
        if self._kind == FUNCTION:
            closing = announce(
                "response.function_call_arguments.done",
                item_id=self._id,
                name=item["name"],
                arguments=self.arguments,
            )
        elif self._kind == CUSTOM:
            text = custom_input(self.arguments)
            closing = announce(
                "response.custom_tool_call_input.delta", item_id=self._id, delta=text
            )
            closing += announce(
                "response.custom_tool_call_input.done", item_id=self._id, input=text
            )
        return closing + announce("response.output_item.done", item=item), item

    def _added(self, announce: Announce) -> bytes:
        return announce("response.output_item.added", item=self._item("in_progress"))

    @property
    def _is_built_in(self) -> bool:
        return self._kind in BUILT_IN

    @property
    def _kind(self) -> str:
        return self._origin.item if self._origin is not None else FUNCTION

    @property
    def _id(self) -> Json:
        return self._item("")["id"]

    def _item(self, status: str) -> dict[str, Json]:
        call = ToolCall(id=self._call_id, name=self._name, arguments=self.arguments)
        return item_of(call, origin=self._origin, number=self.stem, status=status)


def is_whole_json(text: str) -> bool:
    """Whether a text is a JSON value, and not the beginning of one."""
    return read_json(text.encode("utf-8", "replace")) is not None


def _part(kind: PartKind, text: str) -> dict[str, Json]:
    if kind is PartKind.REFUSAL:
        return {"type": "refusal", "refusal": text}
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _summary(text: str) -> dict[str, Json]:
    return {"type": "summary_text", "text": text}
