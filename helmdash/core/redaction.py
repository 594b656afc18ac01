"""Masking what should not be stored: keys, tokens, addresses (project setting "redacted").

A mask says what it stands for, so a reader knows that something was there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

# Stored with every call. Masking more, or less, is a new version.
REDACTION_VERSION = "redaction-1"

# Order matters: the specific shapes first, the general ones after them.
_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("private key", re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(?:-----END [^-]*-----)?")),
    ("token", re.compile(r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*")),
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


def redact_text(text: str) -> str:
    """The text with every recognized secret or address replaced by `[what it was]`."""
    if not text:
        return text
    for what, pattern in _PATTERNS:
        text = pattern.sub(f"[{what}]", text)
    return text


def redact(value: object) -> object:
    """The same for every string inside a JSON value; keys and numbers stay."""
    match value:
        case str():
            return redact_text(value)
        case Mapping():
            return {key: redact(item) for key, item in value.items()}
        case list() | tuple():
            return [redact(item) for item in value]
        case _:
            return value
