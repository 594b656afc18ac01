"""Simulated fleets whose truth is known: what the methods of core.evidence are measured on.

Each kind draws a model's calls of some weeks: when, by which upstream, for what, how large, and
whether the answer was clean. Where its name ends in "cliff" the size of a prompt decides.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from helmdash.core.evidence.safe_input import SafeInput
from helmdash.core.evidence.stratified import Cell
from helmdash.core.rollups.bands import size_band, size_slice

HOUR = 3600.0


class SimCall(NamedTuple):
    """One call. at: seconds since the fleet's beginning."""

    at: float
    upstream: str
    version: str
    purpose: str
    tokens: int
    is_clean: bool


@dataclass(frozen=True, slots=True)
class Fleet:
    """A model's calls. cliff: prompts of more tokens go wrong more often; None: the size decides
    nothing."""

    kind: str
    calls: tuple[SimCall, ...]
    cliff: int | None = None


@dataclass(slots=True)
class _World:
    """How a model is used: the length of the record, and what its prompts are like."""

    random: Random
    seconds: float
    purposes: tuple[str, ...]
    upstreams: tuple[str, ...]
    middle: float
    spread: float
    base: float

    def times(self, n: int) -> list[float]:
        """Moments of calls: by day more than by night, in bursts or evenly."""
        draw = self.random
        found: list[float] = []
        is_bursty = draw.random() < 0.5
        while len(found) < n:
            at = draw.uniform(0, self.seconds)
            if draw.random() > 0.55 + 0.45 * math.sin(at / HOUR / 24 * 2 * math.pi):
                continue
            burst = draw.randint(1, 8) if is_bursty else 1
            found.extend(at + each * draw.uniform(5, 120) for each in range(burst))
        return sorted(found[:n])

    def tokens(self, shift: float = 0.0) -> int:
        return max(int(2 ** self.random.gauss(self.middle + shift, self.spread)), 20)

    def is_true(self, share: float) -> bool:
        return self.random.random() < share


def _world(random: Random) -> _World:
    return _World(
        random=random,
        seconds=random.choice([2, 7, 14, 30, 60]) * 24 * HOUR,
        purposes=tuple(random.sample(["chat", "plan", "route", "verify"], random.randint(1, 3))),
        upstreams=("one", "two")[: random.randint(1, 2)],
        middle=random.uniform(11.5, 14.5),
        spread=random.uniform(1.0, 1.8),
        base=random.uniform(0.75, 0.99),
    )


def _plain(world: _World, n: int, rate: Callable[[float, str, str, int], float]) -> list[SimCall]:
    found = []
    for at in world.times(n):
        purpose, upstream = (
            world.random.choice(world.purposes),
            world.random.choice(world.upstreams),
        )
        tokens = world.tokens()
        clean = world.is_true(rate(at, purpose, upstream, tokens))
        found.append(SimCall(at, upstream, "", purpose, tokens, clean))
    return found


def flat(random: Random, n: int) -> Fleet:
    """One share of clean calls, whatever the size."""
    world = _world(random)
    return Fleet("flat", tuple(_plain(world, n, lambda *_: world.base)))


def mixed(random: Random, n: int) -> Fleet:
    """Purposes and upstreams of different quality and size, in one mix all the time."""
    world = _world(random)
    quality = {each: random.uniform(0.3, 0.99) for each in (*world.purposes, *world.upstreams)}
    shift = {each: random.uniform(-2, 2) for each in (*world.purposes, *world.upstreams)}
    return Fleet("mixed", tuple(_shifting(world, n, quality, shift, lambda at: 0.5)))


def shifting(random: Random, n: int) -> Fleet:
    """The same, but the mix moves over time from one kind of calls to another."""
    world = _world(random)
    world.purposes, world.upstreams = ("chat", "plan"), ("one", "two")
    quality = {each: random.uniform(0.3, 0.99) for each in ("chat", "plan", "one", "two")}
    shift = {each: random.uniform(-2, 2) for each in ("chat", "plan", "one", "two")}
    turn = random.uniform(0.2, 0.8)
    return Fleet(
        "shifting", tuple(_shifting(world, n, quality, shift, lambda at: 0.1 if at < turn else 0.9))
    )


def _shifting(
    world: _World,
    n: int,
    quality: Mapping[str, float],
    shift: Mapping[str, float],
    share: Callable[[float], float],
) -> Iterator[SimCall]:
    for at in world.times(n):
        part = share(at / world.seconds)
        purpose = world.purposes[-1] if world.is_true(part) else world.random.choice(world.purposes)
        upstream = (
            world.upstreams[-1] if world.is_true(part) else world.random.choice(world.upstreams)
        )
        tokens = world.tokens(shift[purpose] + shift[upstream])
        clean = world.is_true(quality[purpose] * quality[upstream])
        yield SimCall(at, upstream, "", purpose, tokens, clean)


def outage(random: Random, n: int) -> Fleet:
    """Everything fails for some hours, once to four times; often while large prompts are sent."""
    world = _world(random)
    windows = []
    for _ in range(random.randint(1, 4)):
        start = random.uniform(0, world.seconds)
        windows.append((start, start + random.uniform(1, 48) * HOUR))
    shift = random.choice([0.0, 1.0, 3.0])
    left = random.uniform(0.0, 0.4)
    found = []
    for at in world.times(n):
        is_out = any(a <= at < b for a, b in windows)
        purpose, upstream = random.choice(world.purposes), random.choice(world.upstreams)
        tokens = world.tokens(shift if is_out else 0.0)
        clean = world.is_true(left if is_out else world.base)
        found.append(SimCall(at, upstream, "", purpose, tokens, clean))
    return Fleet("outage", tuple(found))


def version(random: Random, n: int) -> Fleet:
    """A worse version takes over, which may be named or not, while prompts become larger."""
    world = _world(random)
    turn = random.uniform(0.2, 0.8) * world.seconds
    worse = random.uniform(0.1, world.base - 0.3)
    shift = random.choice([0.0, 1.0, 2.0, 4.0])
    is_named = random.random() < 0.5
    found = []
    for at in world.times(n):
        is_new = at >= turn
        purpose, upstream = random.choice(world.purposes), random.choice(world.upstreams)
        tokens = world.tokens(shift if is_new else 0.0)
        clean = world.is_true(worse if is_new else world.base)
        name = ("2026-05", "2026-08")[is_new] if is_named else ""
        found.append(SimCall(at, upstream, name, purpose, tokens, clean))
    return Fleet("version", tuple(found))


def drift(random: Random, n: int) -> Fleet:
    """Answers become worse, and prompts larger, little by little, and some of it comes back."""
    world = _world(random)
    bottom, shift = random.uniform(0.2, 0.6), random.uniform(0, 3)
    back = random.random() < 0.5
    found = []
    for at in world.times(n):
        part = at / world.seconds
        part = 1 - abs(2 * part - 1) if back else part
        purpose, upstream = random.choice(world.purposes), random.choice(world.upstreams)
        tokens = world.tokens(part * shift)
        clean = world.is_true(world.base + (bottom - world.base) * part)
        found.append(SimCall(at, upstream, "", purpose, tokens, clean))
    return Fleet("drift", tuple(found))


def slope(random: Random, n: int) -> Fleet:
    """Larger prompts fare a little worse, with no place where it happens."""
    world = _world(random)
    steep = random.uniform(0.02, 0.06)

    def rate(at: float, purpose: str, upstream: str, tokens: int) -> float:
        return min(max(world.base - steep * (math.log2(tokens) - world.middle + 3), 0.02), 0.99)

    return Fleet("slope", tuple(_plain(world, n, rate)))


def steep(random: Random, n: int) -> Fleet:
    """A slope of seven to fourteen points for each power of two: bad, but nowhere a cliff."""
    world = _world(random)
    each = random.uniform(0.07, 0.14)

    def rate(at: float, purpose: str, upstream: str, tokens: int) -> float:
        return min(max(world.base - each * (math.log2(tokens) - world.middle + 2), 0.02), 0.99)

    return Fleet("steep", tuple(_plain(world, n, rate)))


def cliff(random: Random, n: int) -> Fleet:
    """Above some tokens forty points less or more are clean, and forty calls lie just above."""
    return _cliff("cliff", random, n, _Trouble())


def weak_cliff(random: Random, n: int) -> Fleet:
    """A fall of forty points exactly, from any share that leaves room for it."""
    return _cliff("weak_cliff", random, n, _Trouble(base=random.uniform(0.45, 0.99), fall=0.4))


def asked_cliff(random: Random, n: int) -> Fleet:
    """The same, where the forty calls lie in the first band above it, half a power of two."""
    trouble = _Trouble(base=random.uniform(0.45, 0.99), fall=0.4, within=1.5)
    return _cliff("asked_cliff", random, n, trouble)


def troubled_cliff(random: Random, n: int) -> Fleet:
    """A cliff among all else: an outage, purposes and upstreams of their own quality and size."""
    names = ("chat", "plan", "route", "verify", "one", "two")
    return _cliff(
        "troubled_cliff",
        random,
        n,
        _Trouble(
            quality={each: random.uniform(0.85, 1.0) for each in names},
            shift={each: random.uniform(-0.7, 0.7) for each in names},
            has_outage=True,
        ),
    )


def talking_cliff(random: Random, n: int) -> Fleet:
    """A cliff that conversations run into: their prompts grow from call to call."""
    return _cliff("talking_cliff", random, n, _Trouble(talks=True))


def talking(random: Random, n: int) -> Fleet:
    """Growing conversations that the size does nothing to, and an outage in the middle of some."""
    world = _world(random)
    start = random.uniform(0, world.seconds)
    end = start + random.uniform(1, 24) * HOUR
    found = [
        call._replace(is_clean=world.is_true(0.2 if start <= call.at < end else world.base))
        for call in _talks(world, n)
    ]
    return Fleet("talking", tuple(found))


def late_cliff(random: Random, n: int) -> Fleet:
    """A cliff that came with a version at some time before the middle."""
    return _cliff("late_cliff", random, n, _Trouble(begins=random.uniform(0.1, 0.5)))


def gone_cliff(random: Random, n: int) -> Fleet:
    """A cliff that is gone since a version of the second quarter."""
    world_cliff = _cliff("gone_cliff", random, n, _Trouble(ends=random.uniform(0.25, 0.5)))
    return Fleet("gone_cliff", world_cliff.calls)


@dataclass(frozen=True, slots=True)
class _Trouble:
    """What makes a cliff harder to see."""

    base: float | None = None
    fall: float | None = None
    quality: Mapping[str, float] = field(default_factory=dict)
    shift: Mapping[str, float] = field(default_factory=dict)
    has_outage: bool = False
    talks: bool = False
    # Forty calls lie between its place and so many times as much.
    within: float = 2.0
    # Between which shares of the time there is a cliff.
    begins: float = 0.0
    ends: float = 1.0


def _cliff(kind: str, random: Random, n: int, trouble: _Trouble) -> Fleet:
    while True:
        world = _world(random)
        base = trouble.base or world.base
        fall = trouble.fall or random.uniform(0.4, base)
        place = int(2 ** random.uniform(world.middle - 0.5, world.middle + world.spread))
        start = random.uniform(0, world.seconds) if trouble.has_outage else world.seconds
        end = start + random.uniform(1, 12) * HOUR
        drawn = _talks(world, n) if trouble.talks else _plain(world, n, lambda *_: 1.0)
        calls = []
        for call in drawn:
            by = (call.purpose, call.upstream)
            tokens = int(call.tokens * 2 ** sum(trouble.shift.get(each, 0.0) for each in by))
            share = base * math.prod(trouble.quality.get(each, 1.0) for each in by)
            is_there = trouble.begins <= call.at / world.seconds <= trouble.ends
            share -= fall if tokens > place and is_there else 0.0
            share = share if not start <= call.at < end else min(share, 0.1)
            calls.append(call._replace(tokens=tokens, is_clean=world.is_true(share)))
        during = [
            each for each in calls if trouble.begins <= each.at / world.seconds <= trouble.ends
        ]
        above = sum(1 for each in during if place < each.tokens <= trouble.within * place)
        below = sum(1 for each in during if each.tokens <= place)
        # A cliff that went has had less time to be met.
        least = 40 if trouble.ends == 1 else 20
        if min(above, below) >= least:
            return Fleet(kind, tuple(calls), cliff=place)


def _talks(world: _World, n: int) -> list[SimCall]:
    """Conversations that begin small and grow to some length, several at a time."""
    draw = world.random
    found: list[SimCall] = []
    while len(found) < n:
        at = draw.uniform(0, world.seconds)
        purpose, upstream = draw.choice(world.purposes), draw.choice(world.upstreams)
        tokens = 2 ** draw.gauss(world.middle - 1.5, 0.7)
        growth = draw.uniform(1.05, 1.4)
        for _ in range(draw.randint(3, 25)):
            found.append(SimCall(at, upstream, "", purpose, int(tokens), True))
            at += draw.uniform(5, 600)
            tokens *= growth
    draw.shuffle(found)
    return sorted(found[:n])


# Where a ceiling is to be found, and where none is.
CLIFFS = (cliff, weak_cliff, asked_cliff, troubled_cliff, talking_cliff, late_cliff)
WITHOUT = (flat, mixed, shifting, outage, version, drift, slope, steep, talking, gone_cliff)
KINDS = (*CLIFFS, *WITHOUT)
Kind = Callable[[Random, int], Fleet]


def is_right(fleet: Fleet, found: SafeInput) -> bool:
    """Whether what was found is the fleet's truth: its cliff within a band, or none."""
    if fleet.cliff is None or found.band is None:
        return fleet.cliff is None and found.band is None
    # The last good band ends below the cliff, or holds it.
    return -2 <= found.band - size_band(fleet.cliff) <= 1


def cells_of(calls: tuple[SimCall, ...], *, seconds: float = HOUR) -> list[Cell]:
    """The calls as rollups have them: added up by stretches of time and slices."""
    found: Counter[tuple[tuple[str, ...], int, int]] = Counter()
    clean: Counter[tuple[tuple[str, ...], int, int]] = Counter()
    for call in calls:
        stratum = (call.upstream, call.version, call.purpose)
        place = (stratum, int(call.at // seconds), size_slice(call.tokens))
        found[place] += 1
        clean[place] += call.is_clean
    return [Cell(*place, calls=n, clean=clean[place]) for place, n in found.items()]
