"""Counting the tokens of a request: platform.claude.com/docs/en/api/messages-count-tokens."""

from __future__ import annotations

import orjson

from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.providers.anthropic.http import post
from helmdash.providers.anthropic.pass_request import with_model
from helmdash.providers.protocols import HttpRequest
from helmdash.providers.wire import Object


class AnthropicCounting:
    """See protocols.TokenCounting."""

    def count_request(
        self, body: bytes, parsed: Object, *, endpoint: Endpoint, model: str
    ) -> HttpRequest:
        """The client's own bytes; only the model's id may change."""
        return post(endpoint, "/messages/count_tokens", with_model(body, parsed, model))

    def write_count(self, tokens: int) -> bytes:
        """Of all that a request holds: system prompt, messages, tools and images."""
        return orjson.dumps({"input_tokens": tokens})
