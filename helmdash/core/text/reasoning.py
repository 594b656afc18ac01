"""Reasoning: taking a model's thoughts out of its reply, so that the reply itself can be read.

Source: helmdeck ADR 051 (hybrid models write a think block before the payload) and the vendors' own
markers. Handles blocks that are closed, nested, never closed, and closed without having been
opened (the chat template wrote the opening tag). A text that is valid JSON as it stands is left
alone: a tag inside it is data. So is a tag inside a quoted string of a line.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from helmdash.core.text.jsontext import NotJson, read_json, unfence
from helmdash.core.text.tokens import utf8_bytes
from helmdash.core.values import quick_value


@quick_value(frozen=True, slots=True, kw_only=True)
class Stripped:
    """A reply without its reasoning (trimmed), and how many UTF-8 bytes went.

    `unclosed`: what the last block holds, where it was never closed; "" where none is open.
    """

    text: str
    stripped_bytes: int
    unclosed: str = ""


# Tag names; those on one line close each other, as models mix them.
_TAG_FAMILIES: tuple[tuple[str, ...], ...] = (
    ("think", "thinking", "thought", "thoughts", "antthinking", "antml:thinking"),
    ("reasoning",),
    ("reflection",),
    ("scratchpad",),
    ("seed:think",),  # ByteDance Seed-OSS
)

# Markers that are not tags: opening, closing.
_MARKERS: tuple[tuple[str, str], ...] = (
    ("[reasoning]", "[/reasoning]"),
    ("[think]", "[/think]"),  # Mistral Magistral
    ("◁think▷", "◁/think▷"),  # Moonshot Kimi
    ("<|begin_of_thought|>", "<|end_of_thought|>"),  # OpenThinker, Sky-T1
    ("<|start_thinking|>", "<|end_thinking|>"),  # Cohere Command A
    ("<|channel>thought", "<channel|>"),  # Gemma 4
)

# People write this one as a heading: without its closing marker it is text like any other.
_NEEDS_CLOSING = "[reasoning]"

# What stands around the answer beside such markers; only the wrapping goes.
_WRAPPING = (
    "<|begin_of_solution|>",
    "<|end_of_solution|>",
    "<|start_response|>",
    "<|end_response|>",
)

# gpt-oss "harmony": <|channel|>NAME<|message|>BODY<|end|>, one per message of the turn.
_HARMONY = re.compile(r"<\|(start|channel|message|end|return|call|constrain)\|>")
_HARMONY_HEADER = re.compile(
    r"<\|channel\|>\s*+\w++[^<]{0,200}(?:<\|constrain\|>[^<]{0,50})?<\|message\|>"
)
# The same with its special tokens lost on the way: "analysis…assistantfinal…".
_BARE_ANALYSIS = "analysis"
_BARE_FINAL = "assistantfinal"

# Taking a block out can bring two halves of a marker together. Two passes settle any real reply;
# a text that still changes after this many is made of nothing but markers.
_MAX_PASSES = 8

# Nor has any real reply so many markers; of more, only the last count, and what stands before them
# is taken for thoughts.
_MOST_MARKERS = 5_000

# A double quote that counts; a backslash takes away the meaning of what follows it.
_QUOTE = re.compile(r'\\.|"', re.DOTALL)

_BLANK_LINES = re.compile(r"\n(?:[^\S\n]*\n){2,}")


# Several of those who judge a call ask the same of its reply.
@lru_cache(maxsize=2)
def strip_reasoning(text: str) -> Stripped:
    """Remove a model's reasoning from its reply.

    A block that never closes reaches to the end; a closing marker without an opening one makes
    everything before it reasoning. Applied twice it gives the same as once. Never raises.

    >>> strip_reasoning('<think>An example: {"a": 1}</think>{"b": 2}').text
    '{"b": 2}'
    """
    whole = text.strip()
    left, unclosed = whole, ""
    for _ in range(_MAX_PASSES):
        before = left
        left, opened = _strip_once(before)
        unclosed = unclosed or opened
        if left == before:
            stripped_bytes = utf8_bytes(whole) - utf8_bytes(left)
            return Stripped(text=left, stripped_bytes=stripped_bytes, unclosed=unclosed)
    return Stripped(text="", stripped_bytes=utf8_bytes(whole))


def without_marks(text: str) -> str:
    """The text without the marks of thoughts, whose words stay.

    >>> without_marks("<think>Perhaps.</think>")
    'Perhaps.'
    """
    return _TOKEN.sub("", text) if _may_hold_markers(text) else text


def _strip_once(text: str) -> tuple[str, str]:
    """What is left after one pass, and what a block holds that reaches to the end of the text."""
    if not _may_hold_markers(text):
        return text, ""
    tokens = _tokens(text)
    if not tokens and _keep_answer_channels(text) is text:
        return text, ""
    if _is_data(text):
        return text, ""
    is_noise = len(tokens) >= _MOST_MARKERS
    cutter = _Cutter(text, position=tokens[0].start if is_noise else 0)
    stripped = _keep_answer_channels(cutter.cut(tokens))
    if stripped == text:
        return text, ""
    return _BLANK_LINES.sub("\n\n", stripped).strip(), cutter.unclosed


def _may_hold_markers(text: str) -> bool:
    """Tell plain text at a glance: every marker has one of these in it."""
    return "<" in text or "[" in text or "◁" in text or text.startswith(_BARE_ANALYSIS)


def _is_data(text: str) -> bool:
    """Whether the text, in its fence or out of it, is JSON already, so that tags in it are data."""
    try:
        read_json(unfence(text))
    except NotJson:
        return False
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class _Token:
    """One marker in the text. `family` pairs openings with closings; "" only wraps."""

    start: int
    end: int
    family: str
    opens: bool


@dataclass(slots=True)
class _Cutter:
    """One pass over the markers of a text, keeping what lies outside of blocks."""

    text: str
    kept: list[str] = field(default_factory=list)
    position: int = 0  # where the text not yet kept or dropped begins
    stack: list[str] = field(default_factory=list)  # families of the open blocks
    is_open: Counter[str] = field(default_factory=Counter)
    opened_at: int = 0  # where the outermost open block begins, behind its marker
    last_close: int | None = None  # index of the last closing marker inside the outermost block
    quotes_from: int = 0
    is_quoted: bool = False

    def cut(self, tokens: Sequence[_Token]) -> str:
        index = 0
        while index < len(tokens):
            self._take(tokens[index], index)
            index += 1
            if index == len(tokens) and self.stack and self.last_close is not None:
                # More openings than closings: thoughts that mention a tag. The block ends at its
                # last closing marker, and what follows that can hold openings only.
                index = self.last_close + 1
                self._leave(tokens[self.last_close])
        if not self.stack:
            self.kept.append(self.text[self.position :])
        return "".join(self.kept)

    @property
    def unclosed(self) -> str:
        """What the block holds that was still open at the end; "" where none was."""
        return self.text[self.opened_at :].strip() if self.stack else ""

    def _take(self, token: _Token, index: int) -> None:
        if self.stack:
            self._take_inside(token, index)
        elif not self._in_quotes(token):
            self._take_outside(token)

    def _take_outside(self, token: _Token) -> None:
        if token.family and not token.opens:
            self.kept.clear()
        else:
            self.kept.append(self.text[self.position : token.start])
        if token.family and token.opens:
            self._push(token.family)
            self.opened_at = token.end
            self.last_close = None
        else:
            self._leave(token)

    def _take_inside(self, token: _Token, index: int) -> None:
        if not token.family:
            return
        if token.opens:
            self._push(token.family)
            return
        self.last_close = index
        if self.is_open[token.family]:
            while self._pop() != token.family:
                pass
        if not self.stack:
            self._leave(token)

    def _leave(self, token: _Token) -> None:
        """Go on outside of every block, after this marker."""
        self.stack.clear()
        self.is_open.clear()
        self.position = self.quotes_from = token.end
        self.is_quoted = False

    def _push(self, family: str) -> None:
        self.stack.append(family)
        self.is_open[family] += 1

    def _pop(self) -> str:
        family = self.stack.pop()
        self.is_open[family] -= 1
        return family

    def _in_quotes(self, token: _Token) -> bool:
        """Whether a double quote is open on the token's line: then the token is data."""
        line = self.text.rfind("\n", self.quotes_from, token.start)
        if line >= 0:
            self.quotes_from, self.is_quoted = line, False
        self.is_quoted ^= _is_quoted(self.text, self.quotes_from, token.start)
        self.quotes_from = token.start
        return self.is_quoted


def _tokens(text: str) -> list[_Token]:
    """The markers of a text; of too many the last."""
    tokens = [_token(match) for match in deque(_TOKEN.finditer(text), maxlen=_MOST_MARKERS)]
    closings = (t.start for t in reversed(tokens) if t.family == _NEEDS_CLOSING and not t.opens)
    last_closing = next(closings, -1)
    return [
        token
        for token in tokens
        if token.family != _NEEDS_CLOSING or not token.opens or token.start < last_closing
    ]


def _token(match: re.Match[str]) -> _Token:
    tag = match["tag"]
    if tag is None:
        family, opens = _LITERALS[match[0].lower()]
    elif match[0].endswith("/>"):
        family, opens = "", True
    else:
        family, opens = _FAMILY_OF_TAG[tag.lower()], not match["slash"]
    return _Token(start=match.start(), end=match.end(), family=family, opens=opens)


def _keep_answer_channels(text: str) -> str:
    """Keep gpt-oss's `final` messages, or where it wrote none its `commentary` (tool calls)."""
    header = _HARMONY_HEADER.search(text)
    if header and not _is_quoted(text, text.rfind("\n", 0, header.start()) + 1, header.start()):
        bodies = _harmony_bodies(text)
        final = [body for channel, body in bodies if channel == "final"]
        shown = [body for channel, body in bodies if channel != "analysis"]
        return "\n".join(final or shown)
    if text.startswith(_BARE_ANALYSIS) and _BARE_FINAL in text:
        return text.rpartition(_BARE_FINAL)[2]
    return text


def _is_quoted(text: str, start: int, end: int) -> bool:
    """Whether an odd number of double quotes stands between two offsets."""
    return sum(mark[0] == '"' for mark in _QUOTE.finditer(text, start, end)) % 2 == 1


def _harmony_bodies(text: str) -> list[tuple[str, str]]:
    """Split harmony text into (channel, body); text outside of messages has channel ""."""
    bodies: list[tuple[str, str]] = []
    channel, reading, position = "", "body", 0
    for marker in _HARMONY.finditer(text):
        part = text[position : marker.start()]
        if reading == "body":
            bodies.append((channel, part))
        elif reading == "channel":
            channel = part.split(maxsplit=1)[0].lower() if part.strip() else ""
        position = marker.end()
        channel, reading = _after(marker[1], channel)
    if reading == "body":
        bodies.append((channel, text[position:]))
    return [(name, body.strip()) for name, body in bodies if body.strip()]


def _after(marker: str, channel: str) -> tuple[str, str]:
    """Say which channel holds after a harmony marker, and what the text after it is."""
    match marker:
        case "message":
            return channel, "body"
        case "channel":
            return channel, "channel"
        case "start" | "constrain":
            return channel, "header"
        case _:  # end, return, call: the message is over
            return "", "body"


_FAMILY_OF_TAG = {name: family[0] for family in _TAG_FAMILIES for name in family}
_LITERALS: dict[str, tuple[str, bool]] = {
    **{opening: (opening, True) for opening, _ in _MARKERS},
    **{closing: (opening, False) for opening, closing in _MARKERS},
    **dict.fromkeys(_WRAPPING, ("", True)),
}
_TOKEN = re.compile(
    # Attributes are short; the cap keeps a lone "<think " from reading on for ever.
    r"<(?P<slash>/?)(?P<tag>{tags})(?=[\s/>])[^<>]{{0,200}}>|{literals}".format(
        tags="|".join(sorted(_FAMILY_OF_TAG, key=len, reverse=True)),
        literals="|".join(re.escape(literal) for literal in _LITERALS),
    ),
    re.IGNORECASE,
)
