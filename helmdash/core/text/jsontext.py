"""JSON inside a model's text: where it starts and ends, and reading it strictly.

Shared by decoding (which wants the value) and by the failure causes (which want to know whether
there was one). Every function takes time in proportion to the text, whatever the text is; and what
costs some microseconds for each bracket is bounded: a text of thousands of values is noise.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from math import isfinite
from typing import NoReturn


class NotJson(ValueError):
    """The text is not one JSON value (or nests deeper, or counts higher, than we can hold)."""


class TooDeep(NotJson):
    """The value nests more than MAX_DEPTH levels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Where an outermost object or array stands in a text; `end` is None when it never closes."""

    start: int
    end: int | None


# As deep as every door takes JSON, so that what was read can also be given back: deeper values are
# written by recursion, which gives up wherever the stack of who called happens to end.
MAX_DEPTH = 200

# A reply has a few values in it, each of which may be as large as it likes.
MOST_SPANS = 10_000
# The smallest of values are two characters long, so that these hold no more of them.
_NOISE_CHARS = 2 * MOST_SPANS

# A string as JSON writes it. It also ends where the text ends, so that no quote is tried twice.
STRING = r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)'

_STRING_OR_BRACKET = re.compile(STRING + r"|[{}\[\]]", re.DOTALL)
# A bracket that opens JSON, or something meant as JSON; "{see above" and "[note]" open nothing.
_OPENER = re.compile(
    r"""\{(?=\s*(?:["'\u201c}]|[A-Za-z_$][\w$]*\s*:|\Z))"""
    r"""|\[(?=\s*(?:["'\u201c\[\]{]|-?\d|(?:true|false|null|True|False|None)\b|\Z))"""
)
_STRING = re.compile(STRING, re.DOTALL)
_NO_BRACKET = re.compile(r"[^{}\[\]]+")
_STEPS = {"{": 1, "[": 1, "}": -1, "]": -1}
_CLOSER_OF = {"{": "}", "[": "]"}
_SURROGATE = re.compile("[\ud800-\udfff]")
# Every backslash takes the next character with it, so that an escaped one starts no escape.
_ESCAPE = re.compile(
    r"""\\(?:(?P<pair>u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"""
    r"""|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)""",
    re.DOTALL,
)
# The word after the fence names the language; it may stand on the line of the JSON itself.
_FENCE = re.compile(r"(?:`{3,}|~{3,})(?:[ \t]*+[\w.+-]*+[ \t]*+(?:\r?\n|(?=[{\[])))?")
_FENCE_ENDS = ("```", "~~~")


def read_json(text: str) -> object:
    """Read a text that is exactly one JSON value; raises NotJson for anything else.

    Stricter than the library: NaN, Infinity and numbers that overflow are not JSON here.
    """
    value, end = read_first_json(text)
    if text[end:].strip():
        raise NotJson("text follows the value")
    return value


def read_first_json(text: str, *, strict: bool = True) -> tuple[object, int]:
    """Read the JSON value a text starts with, and say where it ends; what follows is ignored.

    `strict=False` allows raw line breaks inside strings, and reads a number that is too large to
    hold as null. Raises NotJson.
    """
    start = len(text) - len(text.lstrip())
    decoder = _STRICT if strict else _LENIENT
    try:
        value, end = decoder.raw_decode(text, start)
    except (ValueError, RecursionError) as error:
        raise NotJson(str(error)) from error
    if is_too_deep(text[start:end]):
        raise TooDeep("nested too deeply")
    return value, end


def write_json(value: object, *, is_ascii: bool = True) -> str:
    """Compact JSON of any value the library writes; is_ascii: other characters as escapes.

    Raises TooDeep, TypeError for what is no value of JSON, ValueError for NaN and infinities.
    """
    try:
        text = json.dumps(value, ensure_ascii=is_ascii, allow_nan=False, separators=(",", ":"))
    except RecursionError:
        raise TooDeep("nested too deeply") from None
    if is_too_deep(text):
        raise TooDeep("nested too deeply")
    return text


def is_too_deep(text: str) -> bool:
    """Whether a JSON text nests more than MAX_DEPTH levels.

    Python's own limit is no bound: up to 3.11 it is about a thousand levels less the caller's
    stack, from 3.12 on `json` reads and writes several thousand.
    """
    could_be = text.count("{") + text.count("[") > MAX_DEPTH
    return could_be and measure_depth(text) > MAX_DEPTH


def unfence(text: str) -> str:
    """Take a text out of the code fence it starts with, and trim it."""
    body = text.strip().lstrip("\ufeff").lstrip()
    fence = _FENCE.match(body)
    if fence is None:
        return body
    inside = body[fence.end() :].rstrip()
    # Not a search: from each of many signs in the middle it would read on to the last.
    return (inside.rstrip(inside[-1]) if inside.endswith(_FENCE_ENDS) else inside).strip()


def replace_lone_surrogates(text: str) -> str:
    r"""Put U+FFFD for each half of a surrogate pair, escaped or not, so that no value holds one.

    JSON's grammar allows them, but they are no characters: UTF-8 cannot write them, and neither
    can PostgreSQL. Two halves side by side become the character they stand for.

    >>> replace_lone_surrogates(r'"\ud800 \ud83d\ude00"')
    '"\\ufffd \\ud83d\\ude00"'
    """
    if not text.isascii() and _SURROGATE.search(text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if "\\ud" in text or "\\uD" in text:
        text = _ESCAPE.sub(lambda escape: r"\ufffd" if escape["half"] else escape[0], text)
    return text


def find_spans(text: str) -> Iterator[Span]:
    """Find the outermost objects and arrays, in order. One that never closes is the last.

    Quotes count only inside an object or array: an apostrophe or a stray quote in the prose
    before it hides nothing. Ends after MOST_SPANS: whoever wants the last ones looks at the end of
    the text only.
    """
    start = 0
    for _ in range(MOST_SPANS):
        opener = _OPENER.search(text, start)
        if opener is None:
            return
        end = _end_of(text, opener.start())
        yield Span(start=opener.start(), end=end)
        if end is None:
            return
        start = end


def find_last_spans(text: str) -> tuple[str, list[Span]]:
    """The same, and the text they stand in: of one with too many values, its end alone."""
    spans = list(find_spans(text))
    if len(spans) < MOST_SPANS:
        return text, spans
    end = text[-_NOISE_CHARS:]
    return end, list(find_spans(end))


def find_inner_spans(text: str) -> list[Span]:
    """Find the largest objects and arrays that do close, wherever other brackets never do."""
    spans: list[Span] = []
    opened: list[int] = []
    for token in _STRING_OR_BRACKET.finditer(text):
        if token[0] in _CLOSER_OF:
            opened.append(token.start())
        elif opened and token[0] == _CLOSER_OF[text[opened[-1]]]:
            start = opened.pop()
            while spans and spans[-1].start > start:
                spans.pop()
            spans.append(Span(start=start, end=token.end()))
    return spans


def measure_depth(text: str) -> int:
    """The most brackets that are open at once in a text, whether or not they match."""
    # All of it in C: a whole catalog has some hundred thousand brackets.
    brackets = _NO_BRACKET.sub("", _STRING.sub("", text))
    return max(accumulate(map(_STEPS.__getitem__, brackets), initial=0))


def is_structure(value: object) -> bool:
    """Whether a value found in prose was meant as an answer; "[1]" is a footnote."""
    if isinstance(value, list):
        return any(not isinstance(item, int | float) for item in value)
    return isinstance(value, dict)


def is_json_shaped(text: str) -> bool:
    """Whether a text (already stripped of reasoning) was meant as JSON, readable or not."""
    body = unfence(text)
    if body[:1] in _CLOSER_OF:
        return True
    return any(body[span.start] == "{" for span in find_spans(body))


def _end_of(text: str, start: int) -> int | None:
    """Find where the bracket at `start` is closed, counting brackets of its own kind."""
    opener = text[start]
    closer = _CLOSER_OF[opener]
    depth = 0
    for token in _STRING_OR_BRACKET.finditer(text, start):
        if token[0] == opener:
            depth += 1
            if depth > MAX_DEPTH:
                return None
        elif token[0] == closer:
            depth -= 1
            if depth == 0:
                return token.end()
    return None


def _refuse(constant: str) -> NoReturn:
    raise NotJson(f"{constant} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if not isfinite(number):
        raise NotJson(f"{digits} is too large a number")
    return number


def _finite_or_none(digits: str) -> float | None:
    number = float(digits)
    return number if isfinite(number) else None


def _int_or_none(digits: str) -> int | None:
    try:
        return int(digits)
    except ValueError:  # Python reads up to 4,300 digits
        return None


_STRICT = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)
_LENIENT = json.JSONDecoder(
    parse_constant=_refuse, parse_float=_finite_or_none, parse_int=_int_or_none, strict=False
)
