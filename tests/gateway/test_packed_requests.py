"""Requests whose bodies are compressed: taken like plain ones, within the same bounds."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from tests.gateway.test_large_requests import SHAPES
from tests.gateway.world import PROMPT, World, model_of

pytestmark = pytest.mark.xdist_group("gateway")

MIB = 1024 * 1024

PACKERS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "x-gzip": ("X-GZip", gzip.compress),
    "members": ("gzip", lambda body: gzip.compress(body[:20]) + gzip.compress(body[20:])),
    "deflate": ("deflate", zlib.compress),
    # as some clients send it, without zlib's header around it
    "bare deflate": ("deflate", lambda body: zlib.compress(body)[2:-4]),
}


def send(world: World, path: str, packed: bytes, coding: str) -> Any:
    return world.post(path, content=packed, content_encoding=coding)


@pytest.mark.parametrize("packer", PACKERS)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_packed_request_is_a_call_like_any_other(
    world: World, mark: str, shape: str, packer: str
) -> None:
    coding, pack = PACKERS[packer]
    path, body = SHAPES[shape](model_of(shape, mark=mark), text="What a fine day! " * 50)
    if shape == "gemini":
        path, body = SHAPES[shape](model_of(shape, mark=mark))

    answer = send(world, path, pack(json.dumps(body).encode()), coding)

    assert answer.status_code == 200, answer.text
    call = world.call_of(answer)
    assert (call["status"], call["usage"]["prompt_tokens"]) == ("success", PROMPT)


@pytest.mark.parametrize("packer", PACKERS)
def test_a_large_packed_request_goes_to_the_worker_unpacked(
    world: World, mark: str, packer: str
) -> None:
    coding, pack = PACKERS[packer]
    path, body = SHAPES["openai"](model_of("openai", mark=mark), text="word " * 600_000)
    plain = json.dumps(body).encode()

    answer = send(world, path, pack(plain), coding)

    assert answer.status_code == 200, answer.text
    assert world.call_of(answer)["sent"]["bytes"] > 2 * MIB


@pytest.mark.parametrize(
    ("packed", "coding", "status", "said"),
    [
        (b"{}", "gzip", 400, "not valid gzip"),
        (b"not deflated", "deflate", 400, "not valid deflate"),
        (gzip.compress(b"{}")[:-3], "gzip", 400, "not complete"),
        (zlib.compress(b"{}")[:-3], "deflate", 400, "not complete"),
        (b"", "gzip", 400, ""),
        (gzip.compress(b" " * 9 * MIB), "gzip", 413, "HELMDASH_MAX_BODY_BYTES"),
        (zlib.compress(b" " * 9 * MIB), "deflate", 413, "HELMDASH_MAX_BODY_BYTES"),
        # what is packed twice says nothing that clients send
        (gzip.compress(gzip.compress(b"{}")), "gzip, gzip", 415, "gzip or deflate"),
        (b"{}", "br", 415, "gzip or deflate"),
    ],
)
def test_a_body_that_cannot_be_unpacked_is_told_so(
    world: World, packed: bytes, coding: str, status: int, said: str
) -> None:
    for shape in SHAPES:
        path, _ = SHAPES[shape](model_of(shape))

        answer = send(world, path, packed, coding)

        assert answer.status_code == status, answer.text
        assert said in answer.text
