"""How a simulated server misbehaves: faults of the transport, the same for every vendor.

A fault is chosen by the behaviour in the model's name; it plays the vendor's own bytes until the
moment it goes wrong.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from tests.support.upstreams.http import Exchange
from tests.support.upstreams.plays import THOUGHTS, Asked, Play, play_for

HTML_502 = (
    b"<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad "
    b"Gateway</h1></center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n"
)
# How long an answer that the client should wait for takes between its pieces.
SLOW_SECONDS = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """An error as a vendor words it."""

    status: int
    body: bytes


class Vendor(Protocol):
    """How one vendor writes what a model says."""

    stream_type: str

    def whole(self, asked: Asked, play: Play) -> bytes:
        """A reply in one piece."""

    def frames(self, asked: Asked, play: Play) -> list[bytes]:
        """The same as a stream, one item for each event."""

    def trouble(self, kind: str) -> Trouble:
        """An error: rate | server | overloaded | overflow | key | model, and other wordings."""

    def trouble_in_stream(self) -> bytes:
        """An error as it stands inside a stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One request that is being answered."""

    exchange: Exchange
    asked: Asked
    vendor: Vendor
    number: int
    """1 for the first request to this model, 2 for the second …"""
    outsider_url: str


class Stage:
    """Answers the chats of one server."""

    def __init__(self, vendor: Vendor, *, outsider_url: str) -> None:
        self._vendor = vendor
        self._outsider_url = outsider_url
        self._count: Counter[str] = Counter()

    async def perform(self, exchange: Exchange, asked: Asked) -> None:
        """Answer as the model's name says."""
        self._count[asked.model] += 1
        scene = Scene(
            exchange=exchange,
            asked=asked,
            vendor=self._vendor,
            number=self._count[asked.model],
            outsider_url=self._outsider_url,
        )
        await _FAULTS.get(asked.behaviour, _say)(scene)


async def _say(scene: Scene, *, until: int | None = None, pause: float = 0) -> None:
    """The whole reply as it should be; with `until`, only so many events and no end."""
    exchange, vendor, asked = scene.exchange, scene.vendor, scene.asked
    play = play_for(asked)
    if not asked.stream:
        await exchange.reply(200, vendor.whole(asked, play))
        return
    await exchange.start(200, kind=vendor.stream_type)
    for frame in vendor.frames(asked, play)[:until]:
        await exchange.write(frame)
        await asyncio.sleep(pause)
    if until is None:
        await exchange.end()


async def _refuse(scene: Scene, kind: str, **headers: str) -> None:
    trouble = scene.vendor.trouble(kind)
    await scene.exchange.reply(trouble.status, trouble.body, **headers)


def _always(kind: str, **headers: str) -> Callable[[Scene], Awaitable[None]]:
    async def refuse(scene: Scene) -> None:
        await _refuse(scene, kind, **headers)

    return refuse


def _first(count: int, kind: str, **headers: str) -> Callable[[Scene], Awaitable[None]]:
    async def refuse(scene: Scene) -> None:
        if scene.number <= count:
            await _refuse(scene, kind, **headers)
        else:
            await _say(scene)

    return refuse


async def _hang(scene: Scene) -> None:
    await scene.exchange.hang()


async def _hang_midway(scene: Scene) -> None:
    if scene.asked.stream:
        await _say(scene, until=4)
    await scene.exchange.hang()


async def _hang_thinking(scene: Scene) -> None:
    """Reasoning, and then nothing."""
    frames = scene.vendor.frames(scene.asked, Play(pieces=(), thoughts=THOUGHTS))
    await scene.exchange.start(200, kind=scene.vendor.stream_type)
    for frame in frames[:3]:
        await scene.exchange.write(frame)
    await scene.exchange.hang()


async def _cut_at_once(scene: Scene) -> None:
    scene.exchange.cut()


async def _cut_midway(scene: Scene) -> None:
    exchange = scene.exchange
    if scene.asked.stream:
        await _say(scene, until=4)
    else:
        whole = scene.vendor.whole(scene.asked, play_for(scene.asked))
        await exchange.start(200, kind="application/json")
        await exchange.write(whole[: len(whole) // 2])
    # What was written has to leave before the connection is cut off.
    await asyncio.sleep(SLOW_SECONDS)
    exchange.cut()


async def _cut_midway_once(scene: Scene) -> None:
    await (_cut_midway(scene) if scene.number == 1 else _say(scene))


async def _nothing_once(scene: Scene) -> None:
    await (_nothing(scene) if scene.number == 1 else _say(scene))


async def _endless(scene: Scene) -> None:
    """Frames for ever: the first ones, then the fourth from the end (a piece of text) again."""
    exchange, frames = scene.exchange, scene.vendor.frames(scene.asked, play_for(scene.asked))
    await exchange.start(200, kind=scene.vendor.stream_type)
    for frame in frames[:4]:
        await exchange.write(frame)
    while True:
        await asyncio.sleep(SLOW_SECONDS)
        await exchange.write(frames[3])


async def _slow(scene: Scene) -> None:
    await _say(scene, pause=SLOW_SECONDS)


async def _late(scene: Scene) -> None:
    """Three times 0.1 s until the first byte; then as it should be."""
    await asyncio.sleep(0.3)
    await _say(scene)


async def _crumbs(scene: Scene) -> None:
    """The bytes in pieces of 7: characters and events are cut anywhere."""
    exchange, vendor, asked = scene.exchange, scene.vendor, scene.asked
    play = play_for(asked)
    body = b"".join(vendor.frames(asked, play)) if asked.stream else vendor.whole(asked, play)
    kind = vendor.stream_type if asked.stream else "application/json"
    await exchange.start(200, kind=kind)
    for at in range(0, len(body), 7):
        await exchange.write(body[at : at + 7])
        await asyncio.sleep(0)
    await exchange.end()


async def _nothing(scene: Scene) -> None:
    """200 and not one byte."""
    kind = scene.vendor.stream_type if scene.asked.stream else "application/json"
    await scene.exchange.reply(200, b"", kind=kind)


async def _error_in_200(scene: Scene) -> None:
    if scene.asked.stream:
        await scene.exchange.reply(
            200, scene.vendor.trouble_in_stream(), kind=scene.vendor.stream_type
        )
    else:
        await scene.exchange.reply(200, scene.vendor.trouble("server").body)


async def _error_midway(scene: Scene) -> None:
    if not scene.asked.stream:
        await _error_in_200(scene)
        return
    await _say(scene, until=4)
    await scene.exchange.write(scene.vendor.trouble_in_stream())
    await scene.exchange.end()


async def _garbled(scene: Scene) -> None:
    """Bytes that no reader of this format can read."""
    if not scene.asked.stream:
        await scene.exchange.reply(200, b'{"id": "x", "choices": [{"mess')
        return
    await _say(scene, until=3)
    await scene.exchange.write(b'data: {"id": oops}\n\n{"model": oops\n')
    await scene.exchange.end()


async def _html(scene: Scene) -> None:
    await scene.exchange.reply(502, HTML_502, kind="text/html")


async def _echo(scene: Scene) -> None:
    """An upstream that tells what it was sent, the key with it."""
    told = scene.exchange.seen.text.partition("\n\n")[0].replace("\n", " | ")
    status = 400 if scene.asked.behaviour == "echo-error" else 200
    body = json.dumps({"error": {"message": f"Who are you? {told}", "type": "odd"}})
    await scene.exchange.reply(status, body.encode(), x_request_id=told)


async def _redirect(scene: Scene) -> None:
    target = scene.exchange.seen.target
    await scene.exchange.reply(307, b"", location=f"{scene.outsider_url}{target}")


_FAULTS: dict[str, Callable[[Scene], Awaitable[None]]] = {
    "busy": _always("rate", retry_after="30"),
    "busy-once": _first(1, "rate", retry_after="1"),
    "fail": _always("server"),
    "fail-once": _first(1, "server"),
    "fail-twice": _first(2, "server"),
    "overloaded": _always("overloaded"),
    "bad-key": _always("key"),
    "no-such-model": _always("model"),
    "overflow": _always("overflow"),
    "overflow-openrouter": _always("overflow-openrouter"),
    "overflow-groq": _always("overflow-groq"),
    "overflow-vllm": _always("overflow-vllm"),
    "overflow-llamacpp": _always("overflow-llamacpp"),
    "overflow-mistral": _always("overflow-mistral"),
    "hang": _hang,
    "hang-midway": _hang_midway,
    "hang-thinking": _hang_thinking,
    "cut-at-once": _cut_at_once,
    "cut-midway": _cut_midway,
    "cut-midway-once": _cut_midway_once,
    "endless": _endless,
    "slow": _slow,
    "late": _late,
    "crumbs": _crumbs,
    "nothing": _nothing,
    "nothing-once": _nothing_once,
    "error-in-200": _error_in_200,
    "error-midway": _error_midway,
    "garbled": _garbled,
    "html": _html,
    "echo": _echo,
    "echo-error": _echo,
    "redirect": _redirect,
}
