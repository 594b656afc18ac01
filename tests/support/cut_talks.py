"""Made-up conversations, cut and whole, with the truth of each call.

A prompt has a fixed beginning and grows by a message and a reply each turn. Each conversation has
its own bytes a token and its own noise: of the whole count, or of each turn's part of it. What is
cut is cut as servers do it: to half of the window and a little, to the window exactly, by dropping
whole messages until it fits, or in the middle, to a little below.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from helmdash.core.truncation.sizes import Sizes

HALF, SAW, FULL, SLIDING, MIDDLE, HOSTED = "half", "saw", "full", "sliding", "middle", "hosted"
CUTS = (HALF, FULL, SLIDING, MIDDLE, HOSTED)


@dataclass(frozen=True, slots=True)
class Turn:
    """One call with its truth. `round_number` moves where the client started afresh."""

    sizes: Sizes
    is_cut: bool
    round_number: int = 1
    model: str = "m"


@dataclass(slots=True)
class Talk:
    """One conversation of a scenario."""

    scenario: str
    model: str
    turns: list[Turn] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Voice:
    """How a conversation sounds: bytes a token, growth of a turn, noise and its kind."""

    ratio: float
    start: int
    growth: float
    noise: float
    is_total: bool
    calls: int


def talks(seed: int, count: int) -> Iterator[Talk]:
    """A moderate corpus: half cut, half whole, over a handful of models."""
    chance = random.Random(seed)
    models = [(f"model-{number}", chance.uniform(2.5, 6.0)) for number in range(6)]
    makers = list(_MAKERS.items())
    for number in range(count):
        model, ratio = chance.choice(models)
        # Some content of a model is of another kind.
        ratio *= chance.uniform(0.85, 1.15) if chance.random() < 0.7 else 1.0
        if number % 2:
            scenario = CUTS[number // 2 % len(CUTS)]
            yield _cut(chance, scenario, model, min(max(ratio, 2.5), 6.0))
        else:
            name, make = makers[number // 2 % len(makers)]
            voice = _voice(chance, min(max(ratio, 2.5), 6.0))
            yield Talk(scenario=name, model=model, turns=make(chance, voice))


def _voice(chance: random.Random, ratio: float) -> Voice:
    return Voice(
        ratio=ratio,
        start=chance.randint(2_500, 60_000),
        growth=chance.uniform(0.03, 0.25),
        noise=chance.choice((0.0, 0.01, 0.02, 0.03, 0.05)),
        is_total=chance.random() < 0.5,
        calls=chance.randint(10, 60),
    )


def _prompts(
    chance: random.Random, voice: Voice, calls: int | None = None
) -> list[tuple[int, int]]:
    """Bytes and whole tokens of each call; grows for ever, slower as it becomes long."""
    size, tokens = voice.start, voice.start / voice.ratio
    found: list[tuple[int, int]] = []
    turn = voice.growth * voice.start
    for _ in range(calls or voice.calls):
        told = tokens * chance.gauss(1, voice.noise) if voice.is_total else tokens
        found.append((size, max(round(told), 1)))
        added = int(turn * chance.uniform(0.4, 2.0)) + 40
        size += added
        tokens += added / voice.ratio / (1 if voice.is_total else chance.gauss(1, 3 * voice.noise))
    return found


def _cut(chance: random.Random, scenario: str, model: str, ratio: float) -> Talk:
    voice = _voice(chance, ratio)
    prompts = _prompts(chance, voice)
    tokens = [count for _, count in prompts]
    # A window that the conversation outgrows at some turn, or has outgrown from its first.
    at = 0 if chance.random() < 0.2 else chance.randrange(1, max(len(tokens) * 2 // 3, 2))
    window = _window(chance, scenario, tokens, at)
    # Half of them on a model that others use uncut, as with a server's default and a larger one.
    is_shared = chance.random() < 0.5
    talk = Talk(scenario=scenario, model=model if is_shared else f"{model}-{scenario}-{window}")
    for number, (size, count) in enumerate(prompts):
        is_cut = count > window
        turn = (size - prompts[number - 1][0]) / ratio if number else 0.1 * window
        reported = _reported(chance, scenario, count, window, turn) if is_cut else count
        sizes = Sizes(bytes=size, tokens=reported, messages=2 * number + 2)
        talk.turns.append(Turn(sizes, is_cut))
    return talk


def _window(chance: random.Random, scenario: str, tokens: list[int], at: int) -> int:
    wanted = tokens[at] * (chance.uniform(0.5, 0.98) if at == 0 else chance.uniform(0.9, 1.0))
    if scenario == HOSTED:
        return int(wanted)
    powers = [1 << power for power in range(11, 18)]
    if tokens[-1] <= powers[0]:
        return int(wanted)
    return min(powers, key=lambda window: abs(window - wanted))


def _reported(chance: random.Random, scenario: str, count: int, window: int, turn: float) -> int:
    if scenario == HALF:
        return window // 2 + chance.choice((2, 2, 2, 3, 4))
    if scenario == SAW:
        return count - -(-(count - window) // (window // 2)) * (window // 2) + 2
    if scenario in {FULL, HOSTED}:
        return window
    if scenario == SLIDING:
        # Whole messages go, oldest first.
        return int(window - chance.random() * min(turn, 0.25 * window))
    return int(window * chance.uniform(0.96, 1.0))


# Whole ones


def _turns(prompts: list[tuple[int, int]]) -> list[Turn]:
    return [
        Turn(Sizes(bytes=size, tokens=tokens, messages=2 * number + 2), False)
        for number, (size, tokens) in enumerate(prompts)
    ]


def _plain(chance: random.Random, voice: Voice) -> list[Turn]:
    return _turns(_prompts(chance, voice))


def _overhead(chance: random.Random, voice: Voice) -> list[Turn]:
    """Tool schemas that the bytes do not hold."""
    extra = chance.randint(500, 6_000)
    return _turns([(size, tokens + extra) for size, tokens in _prompts(chance, voice)])


def _cached_only(chance: random.Random, voice: Voice) -> list[Turn]:
    prompts = _prompts(chance, voice)
    found = [prompts[0]]
    for (before, _), (size, _) in pairwise(prompts):
        found.append((size, max(int((size - before) / voice.ratio) + chance.randint(3, 30), 1)))
    return _turns(found)


def _cached_apart(chance: random.Random, voice: Voice) -> list[Turn]:
    turns: list[Turn] = []
    for number, (size, tokens) in enumerate(_prompts(chance, voice)):
        cached = int(tokens * chance.uniform(0.5, 0.95)) if number else 0
        sizes = Sizes(bytes=size, tokens=tokens - cached, cached=cached, messages=2 * number + 2)
        turns.append(Turn(sizes, False))
    return turns


def _images(chance: random.Random, voice: Voice) -> list[Turn]:
    first = chance.randint(1, 5)
    turns: list[Turn] = []
    for number, (size, tokens) in enumerate(_prompts(chance, voice)):
        seen = number >= first
        sizes = Sizes(
            bytes=size + (400_000 if seen else 0),
            tokens=tokens + (1_200 if seen else 0),
            messages=2 * number + 2,
            is_blind=seen,
        )
        turns.append(Turn(sizes, False))
    return turns


def _other_model(chance: random.Random, voice: Voice) -> list[Turn]:
    prompts = _prompts(chance, voice)
    at, factor = len(prompts) // 2, chance.uniform(0.7, 1.3)
    return [
        Turn(
            Sizes(bytes=size, tokens=int(tokens * (factor if number >= at else 1))),
            False,
            model="m" if number < at else "other",
        )
        for number, (size, tokens) in enumerate(prompts)
    ]


def _other_tokenizer(chance: random.Random, voice: Voice) -> list[Turn]:
    """The same name, other counts from a turn on."""
    prompts = _prompts(chance, voice)
    at, factor = len(prompts) // 2, chance.choice((0.75, 0.8, 0.85, 1.2, 1.3))
    return _turns(
        [
            (size, int(tokens * (factor if number >= at else 1)))
            for number, (size, tokens) in enumerate(prompts)
        ]
    )


def _blob(ratio: float) -> Callable[[random.Random, Voice], list[Turn]]:
    """A piece of another kind comes in one turn and stays."""

    def make(chance: random.Random, voice: Voice) -> list[Turn]:
        prompts = _prompts(chance, voice)
        at = chance.randrange(1, len(prompts))
        extra = chance.randint(4_000, 40_000)
        return _turns(
            [
                (size + extra, tokens + int(extra / ratio)) if number >= at else (size, tokens)
                for number, (size, tokens) in enumerate(prompts)
            ]
        )

    return make


def _shift(before: float, after: float) -> Callable[[random.Random, Voice], list[Turn]]:
    """The talk goes on in another language."""

    def make(chance: random.Random, voice: Voice) -> list[Turn]:
        size, tokens = voice.start, voice.start / before
        found: list[tuple[int, int]] = []
        for number in range(voice.calls):
            found.append((size, int(tokens)))
            added = int(voice.start * voice.growth * chance.uniform(0.5, 1.6)) + 40
            size += added
            tokens += added / (before if number < voice.calls // 2 else after)
        return _turns(found)

    return make


def _compacted(chance: random.Random, voice: Voice) -> list[Turn]:
    turns: list[Turn] = []
    number = 0
    while len(turns) < voice.calls:
        part = _prompts(chance, voice, chance.randint(4, 12))
        for place, (size, tokens) in enumerate(part):
            sizes = Sizes(bytes=size, tokens=tokens, messages=2 * place + 2)
            turns.append(Turn(sizes, False, round_number=1 + number * chance.choice((0, 1))))
        number += 1
    rounds = 1
    fixed: list[Turn] = []
    for turn in turns:
        rounds = max(rounds, turn.round_number)
        fixed.append(Turn(turn.sizes, False, round_number=rounds))
    return fixed


def _retried(chance: random.Random, voice: Voice) -> list[Turn]:
    return [turn for turn in _plain(chance, voice) for _ in range(chance.choice((1, 1, 2)))]


def _short(chance: random.Random, voice: Voice) -> list[Turn]:
    found = [(chance.randint(80, 1_999), chance.randint(5, 900)) for _ in range(voice.calls)]
    return _turns(found)


_MAKERS: dict[str, Callable[[random.Random, Voice], list[Turn]]] = {
    "plain": _plain,
    "plain 2": _plain,
    "overhead": _overhead,
    "cached only": _cached_only,
    "plain 3": _plain,
    "cached apart": _cached_apart,
    "images": _images,
    "plain 4": _plain,
    "other model": _other_model,
    "other tokenizer": _other_tokenizer,
    "base64": _blob(1.6),
    "repetitive": _blob(15.0),
    "to English": _shift(2.6, 4.3),
    "to Chinese": _shift(4.3, 2.6),
    "compacted": _compacted,
    "retried": _retried,
    "short": _short,
}
