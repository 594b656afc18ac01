"""`POST /v1/responses/input_tokens`, both ways.

https://platform.openai.com/docs/api-reference/responses/input-tokens
"""

from __future__ import annotations

from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.providers.openai.http import post
from helmdash.providers.openai_responses.pass_request import RESPONSES_PATH, passed_body
from helmdash.providers.protocols import HttpRequest
from helmdash.providers.shared.bodies import to_json
from helmdash.providers.wire import Object


class ResponsesCounting:
    """See protocols.TokenCounting."""

    def count_request(
        self, body: bytes, parsed: Object, *, endpoint: Endpoint, model: str
    ) -> HttpRequest:
        """The client's own bytes, but for the model's id."""
        named = passed_body(body, parsed, model=model)
        return post(endpoint, f"{RESPONSES_PATH}/input_tokens", named)

    def write_count(self, tokens: int) -> bytes:
        """A count as OpenAI would answer it."""
        return to_json({"object": "response.input_tokens", "input_tokens": tokens})
