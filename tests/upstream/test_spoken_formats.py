"""Which format an upstream is spoken to in, where nobody has said it."""

from __future__ import annotations

import pytest

from helmdash.core.upstreams.endpoints import Endpoint, ProviderKind, WireFormat
from helmdash.providers.openai_responses import CLIENT, COMPACT_CLIENT
from helmdash.providers.wire import WireError
from helmdash.upstream.spoken_formats import SpokenFormats

pytestmark = pytest.mark.one_database

CHAT, RESPONSES = WireFormat.CHAT, WireFormat.RESPONSES
DAY_S = 86_400.0


def endpoint(*formats: WireFormat, kind: ProviderKind = ProviderKind.OPENAI) -> Endpoint:
    return Endpoint(name="up", kind=kind, base_url="http://up/v1", formats=formats)


@pytest.mark.parametrize(
    ("status", "code", "message", "is_missing"),
    [
        (404, None, "Not Found", True),
        (404, "unknown_url", "Unknown request URL: POST /v1/responses.", True),
        (405, None, "Method Not Allowed", True),
        (404, "model_not_found", "The model `x` does not exist.", False),
        (404, None, "Item with id 'rs_1' not found.", False),
        (400, None, "Not Found", False),
        (500, None, "Not Found", False),
    ],
)
def test_only_an_address_that_is_not_there_is_remembered(
    status: int, code: str | None, message: str, is_missing: bool
) -> None:
    now = 0.0
    formats = SpokenFormats(clock=lambda: now)
    error = WireError(message=message, code=code)

    assert formats.is_spoken(endpoint(), CLIENT)
    assert formats.learn(endpoint(), CLIENT, error, status=status) is is_missing
    assert formats.is_spoken(endpoint(), CLIENT) is not is_missing
    now = DAY_S
    assert formats.is_spoken(endpoint(), CLIENT)


def test_what_somebody_has_said_holds() -> None:
    formats, gone = SpokenFormats(), WireError(message="Not Found")

    assert not formats.learn(endpoint(CHAT, RESPONSES), CLIENT, gone, status=404)
    assert not formats.is_spoken(endpoint(CHAT), CLIENT)
    for kind in ("gemini", "anthropic"):
        assert not formats.is_spoken(endpoint(kind=ProviderKind(kind)), CLIENT)


@pytest.mark.parametrize("told", [(CHAT, RESPONSES), (RESPONSES,)])
def test_a_host_without_compactions_may_speak_the_format(told: tuple[WireFormat, ...]) -> None:
    formats, said = SpokenFormats(), endpoint(*told)

    assert formats.learn(said, COMPACT_CLIENT, WireError(message="Not Found"), status=404)

    assert not formats.is_spoken(said, COMPACT_CLIENT)
    assert formats.is_spoken(said, CLIENT)
