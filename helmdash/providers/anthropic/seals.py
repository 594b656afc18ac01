"""Signatures of thoughts: Anthropic takes its own back alone; any other is a 400."""

from __future__ import annotations

import re
from collections.abc import Mapping

from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.providers.shared.bodies import with_items
from helmdash.providers.wire import Json, Object, Part, Reasoning

_OWN_HOST = re.compile(r"https?://(?:[^/?#@]*\.)?anthropic\.com(?:[:/]|$)", re.IGNORECASE)


def is_sealed(part: Part) -> bool:
    """Whether it is a thought that Anthropic sealed itself. Its signatures are base64, in which no
    colon stands; another vendor's have a mark with one (providers.gemini.parts)."""
    return isinstance(part, Reasoning) and _is_own(part.signature)


def with_own_thoughts(body: bytes, parsed: Object, endpoint: Endpoint) -> tuple[bytes, Object]:
    """The client's request without thoughts of other vendors' models, which it was given by this
    gateway before it went on with one of Anthropic's; the very same bytes where there are none.

    At Anthropic's own address: others that speak its format may seal as they like, or not at all.
    """
    messages = parsed.get("messages")
    if b'"thinking"' not in body or not isinstance(messages, list):
        return body, parsed
    if _OWN_HOST.match(endpoint.base_url) is None:
        return body, parsed
    items: list[int | Object] = []
    for at, message in enumerate(messages):
        content = message.get("content") if isinstance(message, Mapping) else None
        blocks = content if isinstance(content, list) else []
        kept = [block for block in blocks if not _is_foreign(block)]
        if len(kept) == len(blocks):
            items.append(at)
        elif kept:
            items.append({**message, "content": kept})
    try:
        return with_items(body, parsed, "messages", items)
    except TypeError:  # orjson cannot write what stands beside them
        return body, parsed


def _is_foreign(block: Json) -> bool:
    is_thought = isinstance(block, Mapping) and block.get("type") == "thinking"
    return is_thought and not _is_own(block.get("signature"))


def _is_own(seal: Json) -> bool:
    return isinstance(seal, str) and seal != "" and ":" not in seal
