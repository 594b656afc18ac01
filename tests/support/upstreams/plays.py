"""What a simulated model says: one play, whatever API tells it.

A model's name is `prefix-behaviour` or `prefix-behaviour.mark`; the mark is the test's own, so
that "the first request" is the first of this test.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

# Two, three and four bytes a character: whoever cuts bytes must not break them.
GREETING = ("Hello", ", wörld", " ✓", " 🛰️", " from", " here", ".")
THOUGHTS = ("Let me", " think.")
WHOLE = "".join(GREETING)


class End(StrEnum):
    """Why the model stopped; each API has its own word."""

    STOP = "stop"
    LENGTH = "length"
    TOOLS = "tools"
    REFUSAL = "refusal"
    FILTER = "filter"
    NOT_SAID = "not_said"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """Counts as a vendor counts; `prompt` is the whole prompt, cached tokens included."""

    prompt: int = 1200
    completion: int = 34
    cached: int = 0
    written: int = 0
    reasoning: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """A tool the model asks for."""

    id: str
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a request asks, as far as the play depends on it."""

    model: str
    stream: bool = False
    wants_usage: bool = True
    tools: tuple[str, ...] = ()
    has_tool_result: bool = False
    schema: Mapping[str, Any] | None = None
    """The schema of the JSON mode; {} where any object will do, None without JSON mode."""
    images: int = 0
    text: str = ""
    """The last message, where it is plain text."""
    reply_id: str | None = None
    """What the reply has to be called; None: as all are."""

    @property
    def behaviour(self) -> str:
        """`busy-once` of `gpt-busy-once.a1`."""
        return self.model.partition("-")[2].partition(".")[0].partition(":")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """What is said. `tokens` None: no usage; "null" and "zero": usage that says nothing."""

    pieces: tuple[str, ...] = GREETING
    thoughts: tuple[str, ...] = ()
    uses: tuple[Use, ...] = ()
    refusal: str | None = None
    end: End = End.STOP
    tokens: Tokens | None = field(default_factory=Tokens)
    usage_form: str = "normal"
    """normal | null | zero | missing"""

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    @property
    def thinking(self) -> str:
        return "".join(self.thoughts)


def play_for(asked: Asked) -> Play:
    """What the model of this name says to this request."""
    special = _SPECIAL.get(asked.behaviour)
    if special is not None:
        return special
    if asked.behaviour == "retell":
        return Play(pieces=_in_pieces(f"You said: {asked.text}"), tokens=Tokens(prompt=101_000))
    if asked.tools and not asked.has_tool_result:
        return Play(pieces=(), uses=_uses(asked), end=End.TOOLS)
    if asked.schema is not None:
        return Play(pieces=_in_pieces(json.dumps(_example(asked.schema))))
    if asked.images:
        return replace(Play(), pieces=("I see ", f"{asked.images} image(s)."))
    return Play()


def _uses(asked: Asked) -> tuple[Use, ...]:
    count = 2 if asked.behaviour == "two-tools" else 1
    stem = secrets.token_hex(12) if asked.behaviour == "random-ids" else "sim"
    return tuple(
        Use(id=f"call_{stem}{number}", name=asked.tools[0], arguments={"city": city, "days": 3})
        for number, city in enumerate(("Zürich", "Reykjavík")[:count])
    )


def _example(schema: Mapping[str, Any]) -> dict[str, Any]:
    names = list(schema.get("properties") or {}) or ["answer"]
    return {name: f"{name} ✓" for name in names}


def _in_pieces(text: str) -> tuple[str, ...]:
    return tuple(text[at : at + 7] for at in range(0, len(text), 7))


_SPECIAL: dict[str, Play] = {
    "silent": Play(pieces=(), end=End.NOT_SAID, tokens=Tokens(completion=0)),
    "silent-stop": Play(pieces=(), tokens=Tokens(completion=0)),
    "cut-short": Play(end=End.LENGTH),
    "reasoning": Play(thoughts=THOUGHTS, tokens=Tokens(reasoning=20)),
    "reasoning-length": Play(
        pieces=(), thoughts=THOUGHTS, end=End.LENGTH, tokens=Tokens(completion=500, reasoning=500)
    ),
    "refusal": Play(pieces=(), refusal="I cannot help with that.", end=End.REFUSAL),
    "filter": Play(pieces=(), end=End.FILTER, tokens=Tokens(completion=0)),
    "usage-missing": Play(usage_form="missing"),
    "usage-null": Play(usage_form="null"),
    "usage-zero": Play(usage_form="zero", tokens=Tokens(prompt=0, completion=0)),
    "cached": Play(tokens=Tokens(cached=1000, written=100)),
    # 5 MB of text: more than any buffer on the way holds.
    "huge": Play(pieces=("All work and no play. " * 1000,) * 230),
    "long": Play(pieces=tuple(f"word{number} " for number in range(200))),
    # Of a window of 128,000: more than the 100,000 of comfort, and more than nine tenths.
    "caution": Play(tokens=Tokens(prompt=101_000)),
    "critical": Play(tokens=Tokens(prompt=116_000)),
}
