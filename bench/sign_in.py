"""What the gateway's calls feel of ten clients that try wrong passwords as fast as they may.

    python -m bench sign_in

Quiet and hammered turns alternate, so that whatever else the machine does hits both alike. The
first hammered turn is the one in which passwords are still looked at.
"""

from __future__ import annotations

import asyncio
import re
import statistics
import sys
import time
from collections import Counter
from urllib.parse import urlencode

from bench.gateways import OWN, ground
from bench.table import Row
from bench.turns import Case, take_turn
from tests.support.processes import spawn_python

_CLIENTS = 10
_CASE = Case(16)
_SECONDS = 6.0
_TURNS = 4
_TOKEN = re.compile(rb'name="csrfmiddlewaretoken" value="([^"]+)"')


def rows() -> list[Row]:
    """Median time of a call, alone and beside the hammering."""
    quiet, hammered = [], []
    with ground() as found:
        own = found.target(OWN)
        log = found.place.data_dir / "hammer.log"
        take_turn(found.load, own, _CASE, seconds=2.0)
        for number in range(_TURNS):
            quiet.append(take_turn(found.load, own, _CASE, seconds=_SECONDS).p50_ms)
            hammer = spawn_python("-m", "bench.sign_in", str(found.server.port), log=log)
            time.sleep(0.5)
            hammered.append(take_turn(found.load, own, _CASE, seconds=_SECONDS).p50_ms)
            hammer.wait(timeout=30)
            print(f"  turn {number}: {quiet[-1]:.1f} -> {hammered[-1]:.1f} ms", file=sys.stderr)
        print(log.read_text(), file=sys.stderr)
    worst, calm = max(hammered), statistics.median(quiet)
    return [
        Row(
            name="gateway p50 beside guessed passwords, c=16",
            figure=f"{worst:.1f} ms",
            against=f"{calm:.1f} ms alone",
            ratio=worst / calm,
            goal="<= 2",
            ok=worst <= 2 * calm,
        )
    ]


async def _hammer(port: int) -> None:
    told: Counter[str] = Counter()
    try:
        async with asyncio.timeout(_SECONDS + 1):
            await asyncio.gather(*(_client(port, number, told) for number in range(_CLIENTS)))
    except TimeoutError:
        print(f"  answers: {dict(told)}", flush=True)


async def _client(port: int, number: int, told: Counter[str]) -> None:
    head = b"Host: 127.0.0.1\r\nConnection: close\r\n"
    page = await _ask(port, b"GET /login/ HTTP/1.1\r\n" + head + b"\r\n")
    token, cookie = _TOKEN.search(page), re.search(rb"csrftoken=([^;]+)", page)
    assert token is not None
    assert cookie is not None
    while True:
        form = {"csrfmiddlewaretoken": token[1].decode(), "username": f"user{number}"}
        body = urlencode({**form, "password": "guess"}).encode()
        lines = b"Cookie: csrftoken=%b\r\nContent-Length: %d\r\n" % (cookie[1], len(body))
        lines += b"Content-Type: application/x-www-form-urlencoded\r\n\r\n"
        answer = await _ask(port, b"POST /login/ HTTP/1.1\r\n" + head + lines + body)
        told[answer[9:12].decode()] += 1


async def _ask(port: int, request: bytes) -> bytes:
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request)
        answer = await reader.read()
        writer.close()
    except OSError as error:
        return f"HTTP/1.1 {type(error).__name__}".encode()
    return answer


if __name__ == "__main__":
    asyncio.run(_hammer(int(sys.argv[1])))
