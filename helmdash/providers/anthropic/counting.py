"""Counting the tokens of a request: platform.claude.com/docs/en/api/messages-count-tokens."""

from __future__ import annotations

import orjson

from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.providers.anthropic.http import post
from helmdash.providers.anthropic.pass_request import passed_body
from helmdash.providers.protocols import HttpRequest
from helmdash.providers.wire import Object


class AnthropicCounting:
    """See protocols.TokenCounting."""

    def count_request(
        self, body: bytes, parsed: Object, *, endpoint: Endpoint, model: str
    ) -> HttpRequest:
        """The client's own bytes, as `pass_request` sends them."""
        return post(endpoint, "/messages/count_tokens", passed_body(body, parsed, endpoint, model))

    def write_count(self, tokens: int) -> bytes:
        """Of all that a request holds: system prompt, messages, tools and images."""
        return orjson.dumps({"input_tokens": tokens})
