"""Requests whose bodies are compressed: taken like plain ones, within the same bounds."""

from __future__ import annotations

import gzip
import json
import sys
import zlib
from collections.abc import Callable
from typing import Any

import pytest

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

from tests.gateway.test_large_requests import SHAPES
from tests.gateway.world import PROMPT, World, model_of

pytestmark = pytest.mark.xdist_group("gateway")

MIB = 1024 * 1024


def streamed(body: bytes) -> bytes:
    """As a client packs what it does not have as a whole."""
    packer = zstd.ZstdCompressor(level=3)
    half = len(body) // 2
    return packer.compress(body[:half]) + packer.compress(body[half:]) + packer.flush()


PACKERS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "x-gzip": ("X-GZip", gzip.compress),
    "members": ("gzip", lambda body: gzip.compress(body[:20]) + gzip.compress(body[20:])),
    "deflate": ("deflate", zlib.compress),
    "zstd": ("zstd", zstd.compress),
    "zstd frames": ("zstd", lambda body: zstd.compress(body[:20]) + zstd.compress(body[20:])),
    "zstd without its size": ("zstd", streamed),
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
        (b"{}", "zstd", 400, "not valid zstd"),
        (zstd.compress(b"{}")[:-1], "zstd", 400, "not complete"),
        # memory for the window of a gigabyte
        (b"\x28\xb5\x2f\xfd\x00\xa0\x11\x00\x00{}", "zstd", 400, "not valid zstd"),
        (b"", "gzip", 400, ""),
        (zstd.compress(b" " * 9 * MIB), "zstd", 413, "HELMDASH_MAX_BODY_BYTES"),
        (gzip.compress(b" " * 9 * MIB), "gzip", 413, "HELMDASH_MAX_BODY_BYTES"),
        (zlib.compress(b" " * 9 * MIB), "deflate", 413, "HELMDASH_MAX_BODY_BYTES"),
        # what is packed twice says nothing that clients send
        (gzip.compress(gzip.compress(b"{}")), "gzip, gzip", 415, "gzip or deflate or zstd"),
        (b"{}", "br", 415, "gzip or deflate or zstd"),
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
