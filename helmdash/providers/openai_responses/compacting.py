"""`POST /v1/responses/compact`: a history in, its messages of the user and a compaction out.

https://platform.openai.com/docs/api-reference/responses/compact. OpenAI seals what it sums up. Any
other model is asked for a summary in words, which we hand out in its place: it is read wherever
such a compaction comes back to us.
"""

from __future__ import annotations

from dataclasses import replace

from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.providers.openai.http import post
from helmdash.providers.openai_responses.errors import write_error
from helmdash.providers.openai_responses.items.compactions import written_summary
from helmdash.providers.openai_responses.pass_request import RESPONSES_PATH, passed_body
from helmdash.providers.openai_responses.read_request import read_request
from helmdash.providers.openai_responses.usage import write_usage
from helmdash.providers.protocols import HttpRequest, ReplyContext
from helmdash.providers.shared.bodies import to_json
from helmdash.providers.wire import (
    ChatRequest,
    Json,
    Message,
    Object,
    Reply,
    Role,
    Text,
    WireError,
)

PATH = f"{RESPONSES_PATH}/compact"
_ASK = (
    "Sum up the conversation above, for a model that will go on with the work and sees nothing of "
    "it but the user's own messages and this summary: what is wanted, what was found out and "
    "decided, what was done and what came of it (names, paths and figures exactly), and what comes "
    "next. Write the summary and nothing else."
)
_BEGINNING = "Summary of the conversation so far:\n\n"
_NO_SUMMARY = WireError(
    message="The model wrote no summary. Try again, or go on with the history as it is.",
    code="server_error",
    status=502,
)


def read_compact_request(body: Object, *, model: str | None, stream: bool | None) -> ChatRequest:
    """Read a client's request; it is never streamed. Raises BadRequest naming the member."""
    request = read_request({**body, "tools": None}, model=model, stream=False)
    asked = Message(role=Role.USER, parts=(Text(text=_ASK),))
    return replace(request, closing=asked, keeps_reply=False)


def pass_compact_request(
    body: bytes, parsed: Object, *, endpoint: Endpoint, model: str, stream: bool
) -> HttpRequest:
    """A client's own bytes, but for the model's id."""
    return post(endpoint, PATH, passed_body(body, parsed, model=model))


def check_summary(reply: Reply) -> Reply:
    """The reply, or an error where it has no summary: it would stand for the whole history."""
    if reply.error is None and not reply.text.strip():
        return replace(reply, error=_NO_SUMMARY)
    return reply


def write_compaction(reply: Reply, *, answer: ReplyContext) -> bytes:
    """The user's messages, and the summary as a compaction of ours; an error as OpenAI's."""
    if reply.error is not None:
        return write_error(reply.error)
    stem = answer.call_id.removeprefix("call_")
    messages = answer.request.messages if answer.request is not None else ()
    said = [message for message in messages if message.role is Role.USER and message.text]
    output: list[dict[str, Json]] = [
        {
            "id": f"msg_{stem}_{number}",
            "type": "message",
            "status": "completed",
            "role": "user",
            "content": [{"type": "input_text", "text": message.text}],
        }
        for number, message in enumerate(said)
    ]
    summary = written_summary(_BEGINNING + reply.text)
    output.append({"id": f"cmp_{stem}", "type": "compaction", "encrypted_content": summary})
    return to_json(
        {
            "id": f"resp_{stem}",
            "object": "response.compaction",
            "created_at": answer.created,
            "output": output,
            "usage": write_usage(reply.usage),
        }
    )
