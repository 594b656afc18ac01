"""Calls as a gateway sees them: without a name for their conversation."""

from __future__ import annotations

from typing import Any

from helmdash.core.calls.capture import Capture
from helmdash.core.conversations.fingerprints import ChatTurn, links_of
from tests.factories import make_capture

TASK = (
    "Please look through the repository, find the function that reads the configuration file, "
    "and tell me which of its branches no test ever reaches."
)


def turns(*texts: str) -> list[ChatTurn]:
    """A request: texts of user and assistant in turn."""
    return [
        ChatTurn(role="assistant" if number % 2 else "user", text=text)
        for number, text in enumerate(texts)
    ]


def nameless(
    *texts: str, reply: str | None = "Fine.", is_retry: bool = False, **over: Any
) -> Capture:
    """A call with these turns and this reply, which names no conversation."""
    answer = None if reply is None else ChatTurn(role="assistant", text=reply)
    links = links_of(turns(*texts), reply=answer, is_retry=is_retry)
    return make_capture(**{"conversation": None, "links": links, **over})
