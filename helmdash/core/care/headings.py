"""The six headings of a re-entry package, and how agents spell them.

Source: "Context Health Monitor" (docs/sources.md). Models write them as Markdown headings, in bold,
numbered, as list items or as plain lines with a colon, with "and", "&" or a slash. A line that is
not surely a heading stays text: at worst a note's words stand under another heading, they are never
lost.
"""

from __future__ import annotations

import re

HEADINGS: tuple[str, ...] = (
    "Goal and scope",
    "Current progress",
    "Key decisions and constraints",
    "Changes",
    "Next steps",
    "Open questions and risks",
)
# Where text without a heading goes.
UNTITLED = HEADINGS[1]
# What a package says under a heading without words; an agent may write a package back as a note.
NOTHING_NOTED = "(nothing noted)"
NO_ROOM = "(left out: no room)"

_AND = r"\s*(?:/|&|,|\+|\band\b)\s*"
# In the order of HEADINGS: the whole heading, then the shorter forms that count only where the
# line is surely a heading.
_SPELLINGS = (
    (rf"goals?{_AND}scope", r"goals?|scope"),
    (r"current\s+progress", r"progress"),
    (
        rf"key\s+decisions?{_AND}constraints?",
        rf"(?:key\s+)?decisions?(?:{_AND}constraints?)?|constraints?",
    ),
    (r"changes", r"changes\s+made"),
    (r"next\s+steps?", r"next"),
    (rf"open\s+questions?{_AND}risks?", rf"(?:open\s+)?questions?(?:{_AND}risks?)?|risks?"),
)
# Longer lines are read no further: a heading with its colon stands at the start.
_WINDOW_CHARS = 120

_MARK = re.compile(r" {0,3}(?P<mark>(?:(?:#{1,6}\s*|[-*+•]\s+|\d{1,2}[.)]\s+))*)")
_ASIDE = r"(?:\s*\((?P<aside>[^()]{0,60})\))?"
# The asides that two headings have in "Context Health Monitor"; any other is the agent's and stays.
_USUAL_ASIDES = ("", "files/modules", "files", "modules", "actionable")
_FENCE = re.compile(r"\s*(?:```|~~~)")


def sections(content: str) -> dict[str, str]:
    """Take a note apart: heading -> its text, in the order of HEADINGS, without empty ones.

    Text before the first heading, or all of it where there is none, goes under UNTITLED. Inside a
    fenced block nothing is a heading.
    """
    lines: dict[str, list[str]] = {heading: [] for heading in HEADINGS}
    current, is_fenced = UNTITLED, False
    for line in content.split("\n"):
        if _FENCE.match(line):
            is_fenced = not is_fenced
        found = None if is_fenced else _heading_line(line)
        if found:
            current, line = found
        if line.strip() or not found:
            lines[current].append(line)
    texts = {heading: _trimmed(said) for heading, said in lines.items()}
    return {heading: text for heading, text in texts.items() if text}


def begins_with_heading(content: str) -> bool:
    """Whether a note is written under these headings from its first line on."""
    return _heading_line(content.strip().split("\n", 1)[0]) is not None


def find_heading(title: str) -> str | None:
    """The heading of a package that a title means, in any spelling `sections` reads, or None."""
    found = _heading_line(f"## {title}")
    return found[0] if found and not found[1] else None


def _heading_line(line: str) -> tuple[str, str] | None:
    """Read a line as a heading and what follows it on the line; None when it is text."""
    marked = _MARK.match(line)
    if marked is None or not line.strip():
        return None
    mark, rest = marked["mark"], line[marked.end() :]
    is_listed = "#" not in mark and mark != ""
    bold = _BOLD.match(rest[:_WINDOW_CHARS])
    plain = bold or _PLAIN.match(rest[:_WINDOW_CHARS])
    if plain is None:
        return None
    whole, heading = _which(plain)
    is_sure = "#" in mark or bold is not None or (":" in plain[0] and not is_listed)
    if not (whole or is_sure):
        return None
    aside = (plain["aside"] or "").strip()
    kept = "" if aside.lower() in _USUAL_ASIDES else f"({aside}) "
    return heading, (kept + rest[plain.end() :].strip()).strip()


def _which(found: re.Match[str]) -> tuple[bool, str]:
    """Tell which heading matched, and whether by its whole name."""
    groups = found.groupdict()
    at = next(at for at in range(len(HEADINGS)) if groups[f"w{at}"] or groups[f"s{at}"])
    return bool(groups[f"w{at}"]), HEADINGS[at]


def _trimmed(lines: list[str]) -> str:
    said = [line.rstrip() for line in lines if line.strip() not in (NOTHING_NOTED, NO_ROOM)]
    return "\n".join(said).strip("\n")


_LABEL = (
    "(?:"
    + "|".join(
        f"(?P<w{at}>{whole})|(?P<s{at}>{short})" for at, (whole, short) in enumerate(_SPELLINGS)
    )
    + ")"
)
# Longest first is not needed: what must follow a label makes the shorter ones fail.
_BOLD = re.compile(
    rf"(?P<em>\*{{1,3}}|_{{1,3}}){_LABEL}{_ASIDE}\s*:?\s*(?P=em)\s*:?", re.IGNORECASE
)
_PLAIN = re.compile(rf"{_LABEL}{_ASIDE}\s*(?::|#*\s*$)", re.IGNORECASE)
