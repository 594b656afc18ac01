"""Decoding: the one JSON value a model was asked for, out of whatever it wrote around it.

Source: helmdeck ADR 051. Stages, each tried only where the ones before gave nothing that the
caller accepts: the value the reply starts with; every outermost object and array of it, last
first; the same mended; what is complete of a reply that was cut off; the json_repair library,
which guesses; and last, for a caller that knows what it looks for, thoughts that never close.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Final

import json_repair

from helmdash.core.calls.capture import Capture
from helmdash.core.calls.failures import Advice, Cause, FailureCause, classify
from helmdash.core.calls.finish import FinishReason, is_broken_off
from helmdash.core.calls.usage import Usage
from helmdash.core.decoding.mending import is_cut_off, keep_complete, tidy
from helmdash.core.text.jsontext import (
    NotJson,
    Span,
    find_inner_spans,
    find_last_spans,
    is_json_shaped,
    is_structure,
    measure_depth,
    read_first_json,
    replace_lone_surrogates,
    unfence,
)
from helmdash.core.text.reasoning import strip_reasoning

# Stored with every plan. Another value read out of the same reply is a new version.
DECODING_VERSION: Final = "decoding-1"

# On noise the library's time grows with the square of the length (10,000 characters took it two
# seconds) and steeply with the depth. A plan of 1,500 tokens has about 6,000 characters, and its
# arguments nest a few levels.
_MAX_GUESS_CHARS = 8_000
_MAX_GUESS_DEPTH = 32
# A reply has a few values in it. One with hundreds of broken ones is noise: the last are enough.
_MAX_MENDED = 200
# What mends reads each bracket and each string by itself, some microseconds for each. A larger text
# than this, which no model writes in one reply, is read as it stands or not at all.
_MAX_MENDED_CHARS = 256 * 1024
# A caller's check may take a millisecond for each value. A reply holds its answer near its end,
# and a plan of 1,500 tokens has a few hundred objects in it.
_MAX_SHOWN = 2_000

Accepts = Callable[[object], bool]


class Stage(StrEnum):
    """How a value was found."""

    FIRST_VALUE = "first_value"
    SCAN = "scan"
    REPAIR = "repair"
    SALVAGE = "salvage"
    GUESS = "guess"
    THOUGHTS = "thoughts"  # in a block of reasoning that the model never closed


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """The JSON that was found, and how.

    partial: its end is missing. stripped_bytes: UTF-8 bytes of reasoning that were removed.
    """

    value: object
    stage: Stage
    partial: bool
    stripped_bytes: int


class Undecodable(Exception):
    """The reply holds no value that the caller accepts. `cause` says why, and what to do."""

    def __init__(self, cause: Cause, *, label: str) -> None:
        super().__init__(f"The {label} reply could not be decoded: {cause.detail}")
        self.cause = cause


def decode(
    raw: str,
    *,
    finish_reason: FinishReason | None = None,
    accepts: Accepts | None = None,
    label: str = "model",
) -> Decoded:
    """Find the JSON value in a model's reply.

    `accepts` says whether a value is the one looked for; without it the first object or array
    counts, and any value that is the whole reply. With it, the last value inside of thoughts that
    never close counts where no JSON stands outside, unless the reply was cut off. `partial` means
    that the reply was cut off and only complete elements were kept. A lone half of a surrogate
    pair comes back as U+FFFD. Of a reply with thousands of values only the last 2,000 are shown to
    `accepts`, and the last 2,000 inside of those. Raises Undecodable, and whatever `accepts`
    raises.
    """
    stripped = strip_reasoning(raw)
    wanted = accepts or _anything
    body = replace_lone_surrogates(unfence(stripped.text))
    for stage, value in _values(body, accepts):
        if wanted(value):
            return Decoded(
                value=value,
                stage=stage,
                partial=stage is Stage.SALVAGE,
                stripped_bytes=stripped.stripped_bytes,
            )
    if accepts is not None and not is_broken_off(finish_reason) and not is_json_shaped(body):
        for stage, value in _thoughts(replace_lone_surrogates(stripped.unclosed)):
            if wanted(value):
                return Decoded(
                    value=value,
                    stage=Stage.THOUGHTS,
                    partial=stage is Stage.SALVAGE,
                    stripped_bytes=stripped.stripped_bytes,
                )
    raise Undecodable(_cause(raw, finish_reason), label=label)


def _values(body: str, accepts: Accepts | None) -> Iterator[tuple[Stage, object]]:
    """Give candidate values, best first; later stages cost nothing unless they are reached."""
    if not body:
        return
    yield from _first_value(body)
    body, spans = find_last_spans(body)
    values, broken = _read_spans(body, spans)
    for value in _found(values, accepts):
        yield Stage.SCAN, value
    broken = broken[:_MAX_MENDED]
    for text in broken:
        yield from _mended(text, Stage.REPAIR)
    tail = body[spans[-1].start :] if spans and spans[-1].end is None else ""
    if tail:
        yield from _tail_values(tail)
    yield from _guesses(broken)
    if tail and accepts is not None and len(tail) <= _MAX_MENDED_CHARS:
        inside, _ = _read_spans(tail, find_inner_spans(tail))
        for value in _found(inside, accepts):
            yield Stage.SCAN, value


def _thoughts(body: str) -> Iterator[tuple[Stage, object]]:
    """Give what thoughts hold from their end on, mended or not: what comes before is a draft."""
    return islice(_from_the_end(body), _MAX_SHOWN)


def _from_the_end(body: str) -> Iterator[tuple[Stage, object]]:
    left = _MAX_GUESS_CHARS
    body, spans = find_last_spans(body)
    for span in spans[: -_MAX_MENDED - 1 : -1]:
        text = body[span.start : span.end]
        if span.end is None:
            yield from _tail_values(text)
            inner = find_inner_spans(text) if len(text) <= _MAX_MENDED_CHARS else []
            inside, _ = _read_spans(text, inner)
            yield from ((Stage.SCAN, value) for value in inside)
            continue
        try:
            value, _ = read_first_json(text)
        except NotJson:
            yield from _mended(text, Stage.REPAIR)
            left -= len(text)
            if left >= 0:
                yield from _guessed(text)
        else:
            yield Stage.SCAN, value
            yield from ((Stage.SCAN, inner) for inner in _containers(value))


def _first_value(body: str) -> Iterator[tuple[Stage, object]]:
    """Read what the reply starts with. A bare word or number counts only if it is all there is."""
    try:
        value, end = read_first_json(body)
    except NotJson:
        return
    if is_structure(value) or not body[end:].strip():
        yield Stage.FIRST_VALUE, value


def _read_spans(body: str, spans: Iterable[Span]) -> tuple[list[object], list[str]]:
    """Read what closes, last first: the values, and the texts that are not JSON as they stand."""
    values: list[object] = []
    broken: list[str] = []
    for span in spans:
        if span.end is None:
            continue
        text = body[span.start : span.end]
        try:
            values.append(read_first_json(text)[0])
        except NotJson:
            broken.append(text)
    return values[::-1], broken[::-1]


def _found(values: Sequence[object], accepts: Accepts | None) -> Iterator[object]:
    """Order the values read: models explain with examples, then answer, so the last comes first.

    A caller that knows what it looks for is also shown what is inside of them, since models wrap
    their answers. Without one, an object goes before a list.
    """
    if accepts is None:
        yield from (value for value in values if isinstance(value, dict))
        yield from (value for value in values if is_structure(value))
        return
    yield from islice(values, _MAX_SHOWN)
    yield from islice((inner for value in values for inner in _containers(value)), _MAX_SHOWN)


def _containers(value: object) -> Iterator[object]:
    """Give every object and list inside a value, last first, without the value itself."""
    queue = _children(value)
    while queue:
        inner = queue.pop()
        if isinstance(inner, dict | list):
            yield inner
            queue.extend(_children(inner))


def _children(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, list) else []


def _mended(text: str, stage: Stage) -> Iterator[tuple[Stage, object]]:
    if len(text) > _MAX_MENDED_CHARS:
        return
    try:
        value, _ = read_first_json(tidy(text), strict=False)
    except NotJson:
        return
    if _says_something(value):
        yield stage, value


def _tail_values(tail: str) -> Iterator[tuple[Stage, object]]:
    """Read a reply that never closes: cut off, or with a quote too many."""
    if len(tail) > _MAX_MENDED_CHARS:
        return
    tidied = tidy(tail)
    if not is_cut_off(tidied):
        yield from _guessed(tail)
    for text in keep_complete(tidied):
        values = list(_mended(text, Stage.SALVAGE))
        yield from values or ((Stage.SALVAGE, value) for _, value in _guessed(text))


def _guesses(texts: Sequence[str]) -> Iterator[tuple[Stage, object]]:
    """Guess at one text after the other, until the size is used up."""
    left = _MAX_GUESS_CHARS
    for text in texts:
        left -= len(text)
        if left < 0:
            return
        yield from _guessed(text)


def _guessed(text: str) -> Iterator[tuple[Stage, object]]:
    """Let the library guess, on a text of a reasonable size and depth."""
    if len(text) > _MAX_GUESS_CHARS or measure_depth(text) > _MAX_GUESS_DEPTH:
        return
    try:
        value: object = json_repair.loads(text, skip_json_loads=True)
        # Refuses what could not leave as JSON again. The library reads each half of a surrogate
        # pair for itself; written and read once more, they are one character.
        written = json.dumps(value, allow_nan=False)
        if "\\ud" in written:
            value = json.loads(replace_lone_surrogates(written))
    except Exception:  # a guess that fails, however it fails, is no guess
        return
    if is_structure(value) and _says_something(value):
        yield Stage.GUESS, value


def _says_something(value: object) -> bool:
    """Whether a mended value has any content: brackets alone are what mending leaves of noise."""
    queue = [value]
    while queue:
        inner = queue.pop()
        if isinstance(inner, dict):
            queue.extend(inner.values())
        elif isinstance(inner, list):
            queue.extend(inner)
        else:
            return True
    return False


def _anything(value: object) -> bool:
    return True


def _cause(raw: str, finish_reason: FinishReason | None) -> Cause:
    """Classify the reply as a call that was answered and could not be read."""
    told = Capture(
        model="",
        http_status=200,
        finish_reason=str(finish_reason) if finish_reason else None,
        content=raw,
        decoded=False,
    )
    cause = classify(told, usage=Usage(), finish_reason=finish_reason)
    return cause or Cause(
        name=FailureCause.UNDECODABLE,
        rule="undecodable.reply",
        advice=Advice.RETRY,
        detail="The reply holds no JSON.",
    )
