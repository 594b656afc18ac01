"""Masking what should not be stored: keys, tokens, addresses (project setting "redacted").

A mask says what it stands for, so a reader knows that something was there. A project may add
patterns of its own (core.text.own_patterns); what they cannot look at in time is not kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from helmdash.core.text.own_patterns import BadPattern, compile_pattern

# Stored with every call. Masking more, or less, is a new version.
REDACTION_VERSION = "redaction-2"  # 1, never stored: without own patterns

# Order matters: the specific shapes first, the general ones after them.
_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("private key", re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(?:-----END [^-]*-----)?")),
    (
        "token",
        # Looked for once in a run of such characters: from every `eyJ` of a long run without a dot
        # the whole rest would be read, minutes for a hostile megabyte, while no other thread runs.
        re.compile(
            r"(?<![\w-])(?=[\w-]{11,}+\.[\w-]{8,}+\.)(?P<before>[\w-]*?)\beyJ[\w-]{8,}+\.[\w-]++\.[\w-]*+"
        ),
    ),
    ("key", re.compile(r"\b(?:sk|pk|rk|hd|ghp|gho|ghs|xox[abp]|glpat)[-_][\w-]{12,}")),
    ("key", re.compile(r"\b(?:AKIA|ASIA|AIza)[\w-]{12,}")),
    ("token", re.compile(r"(?i)\bbearer\s+[\w.~+/-]{8,}=*")),
    (
        "secret",
        re.compile(
            r"(?i)\b(?:api[_-]?key|secret|password|passwd|token)\b[\"']?\s*[:=]\s*[\"']?[^\s\"',;]{6,}"
        ),
    ),
    ("email", re.compile(r"\b[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}\b")),
    ("card", re.compile(r"\b(?:\d[ -]?){13,16}\b")),
)


# A match of an own pattern may begin in a step and end in the next one: 2,048 characters at most.
_STEP_CHARS = 1024
# What own patterns may take for all texts of one call; a million characters of prose take a tenth.
OWN_SECONDS = 0.25
OWN_MASK = "[masked]"
NOT_CHECKED = "[not kept: the project's own patterns take too long on it]"


class Masker:
    """What is masked in the texts of one call: by own patterns, then by the built-in ones.

    seconds: a clock, such as `time.perf_counter`; it only bounds what own patterns may take.
    Where that is used up the rest of a text is not kept at all: nothing is stored unlooked at.
    """

    def __init__(self, patterns: Sequence[str] = (), *, seconds: Callable[[], float]) -> None:
        self._own = _compiled(patterns)
        self._seconds = seconds
        self._left = OWN_SECONDS

    def text(self, text: str) -> str:
        """Every match of an own pattern as `[masked]`, then what `redact_text` replaces."""
        # Own patterns first: they know more of what they mask than that it looks like a card.
        for pattern in self._own:
            text = self._masked(text, pattern)
        return redact_text(text)

    def value(self, value: object) -> object:
        """The same for every string inside a JSON value; keys and numbers stay."""
        return _mapped(value, self.text)

    def _masked(self, text: str, pattern: re.Pattern[str]) -> str:
        kept: list[str] = []
        start = at = 0
        while at < len(text):
            if self._left <= 0:
                return "".join((*kept, text[start:at], NOT_CHECKED))
            began = self._seconds()
            found = pattern.search(text, at, at + 2 * _STEP_CHARS)
            if found is not None and found.end() == at + 2 * _STEP_CHARS:
                # At the edge of what it saw a match may be cut short.
                found = pattern.match(text, found.start(), found.start() + 2 * _STEP_CHARS) or found
            self._left -= self._seconds() - began
            if found is None or found.start() >= at + _STEP_CHARS:
                at += _STEP_CHARS
                continue
            kept += (text[start : found.start()], OWN_MASK)
            start = at = found.end()
        return "".join((*kept, text[start:])) if kept else text


def redact_text(text: str) -> str:
    """The text with every recognized secret or address replaced by `[what it was]`."""
    if not text:
        return text
    for what, pattern in _PATTERNS:
        before = r"\g<before>" if "before" in pattern.groupindex else ""
        text = pattern.sub(f"{before}[{what}]", text)
    return text


def redact(value: object) -> object:
    """The same for every string inside a JSON value; keys and numbers stay."""
    return _mapped(value, redact_text)


def _mapped(value: object, mask: Callable[[str], str]) -> object:
    match value:
        case str():
            return mask(value)
        case Mapping():
            return {key: _mapped(item, mask) for key, item in value.items()}
        case list() | tuple():
            return [_mapped(item, mask) for item in value]
        case _:
            return value


def _compiled(patterns: Sequence[str]) -> tuple[re.Pattern[str], ...]:
    """Those that are patterns: one that was stored when the rules were others masks nothing."""
    found: list[re.Pattern[str]] = []
    for text in patterns:
        try:
            found.append(compile_pattern(text))
        except BadPattern:
            continue
    return tuple(found)
