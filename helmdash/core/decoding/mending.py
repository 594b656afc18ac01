"""Mending: making JSON of what a weak model wrote instead, without guessing at what it meant.

Trailing commas, single or curly quotes, bare keys, Python's literals, raw line breaks inside
strings; and a text that was cut off, of which only what is complete is kept (helmdeck ADR 051 saw
plans cut in mid-step). Each function reads the text once.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from helmdash.core.text.jsontext import MAX_DEPTH, STRING

_SLOPPY = re.compile(
    rf"(?P<double>{STRING})"
    r"|(?P<single>'(?:[^'\\]++|\\.)*+(?:'|\\?\Z))"
    r"|(?P<curly>\u201c(?:[^\u201c\u201d\\]++|\\.)*+(?:\u201d|\\?\Z))"
    r"|(?P<comma>,(?=\s*+[}\]]))"
    r"|(?<=[{,])(?P<gap>\s*+)(?P<key>[A-Za-z_$][\w$-]*+)(?=\s*+:)"
    r"|(?P<word>-?\b(?:True|False|None|NaN|Infinity|undefined)\b)",
    re.DOTALL,
)
_LITERALS = {"True": "true", "False": "false"}  # the others stand for "no value"
_QUOTES_INSIDE = re.compile(r"""\\(?P<escaped>.)|(?P<bare>")""", re.DOTALL)

_STRUCTURE = re.compile(STRING + r"|[{}\[\],:]", re.DOTALL)
_CLOSER_OF = {"{": "}", "[": "]"}
_OPENER_OF = {closer: opener for opener, closer in _CLOSER_OF.items()}


def tidy(text: str) -> str:
    """Rewrite sloppy JSON as JSON; what is in double quotes stays as it is.

    >>> tidy("{'ok': True, 'ids': [1, 2,],}")
    '{"ok": true, "ids": [1, 2]}'
    """
    return _SLOPPY.sub(_tidy_token, text)


def is_cut_off(text: str) -> bool:
    """Whether a text that never closes stops short, rather than having lost count of its quotes.

    A quote too many leaves a last string open that has swallowed every bracket still due.
    """
    last = deque(_STRUCTURE.finditer(text), maxlen=1).pop()  # the opening bracket at the least
    if last[0][0] != '"' or _is_closed(last[0]):
        return True
    due = "".join(_CLOSER_OF[frame.opener] for frame in reversed(_open_frames(text)))
    return not (due and "".join(last[0].split()).endswith(due))


def keep_complete(text: str) -> Iterator[str]:
    """Close a cut-off text behind what is complete in it, best first.

    Inside a list only whole elements stay: of a plan, the steps that were written to their end.
    The outermost open list decides; where it wraps everything and holds no whole element, the one
    inside it does. Without any open list, the members that are complete stay.
    """
    frames = _open_frames(text)
    lists = [depth for depth, frame in enumerate(frames) if frame.opener == "["]
    wrapping = 0
    while wrapping < len(lists) and lists[wrapping] == wrapping and frames[wrapping].is_empty:
        wrapping += 1
    depth = lists[min(wrapping, len(lists) - 1)] if lists else len(frames) - 1
    if depth >= 0:
        closers = (_CLOSER_OF[frame.opener] for frame in reversed(frames[: depth + 1]))
        yield text[: frames[depth].complete_to] + "".join(closers)


@dataclass(slots=True)
class _Frame:
    """An object or array that is open at some point of the text."""

    opener: str
    complete_to: int  # everything before this offset is complete
    is_empty: bool = True
    has_key: bool = False  # in an object: a colon was seen, a value is due

    def complete(self, offset: int) -> None:
        """Note that an element ends here; in an object only a value completes a member."""
        if self.opener == "[" or self.has_key:
            self.complete_to = offset
            self.is_empty = self.has_key = False


def _open_frames(text: str) -> list[_Frame]:
    """Walk a text and give what is still open at its end, outermost first (none if too deep)."""
    frames: list[_Frame] = []
    for token in _STRUCTURE.finditer(text):
        mark = token[0][0]
        if mark in _CLOSER_OF:
            if len(frames) == MAX_DEPTH:
                return []
            frames.append(_Frame(opener=mark, complete_to=token.end()))
        elif mark in _OPENER_OF:
            _close(frames, _OPENER_OF[mark], token.end())
        elif frames:
            _note(frames[-1], token)
    return frames


def _close(frames: list[_Frame], opener: str, end: int) -> None:
    """Close the innermost frame; a bracket of the other kind closes nothing."""
    if frames and frames[-1].opener == opener:
        frames.pop()
        if frames:
            frames[-1].complete(end)


def _note(frame: _Frame, token: re.Match[str]) -> None:
    mark = token[0][0]
    if mark == ":":
        frame.has_key = frame.opener == "{"
    elif mark == ",":
        if frame.opener == "{" or _is_scalar_before(frame, token):
            frame.complete(token.start())
    elif _is_closed(token[0]):
        frame.complete(token.end())


def _is_scalar_before(frame: _Frame, token: re.Match[str]) -> bool:
    """Whether the comma ends an element, and does not merely follow one."""
    return bool(token.string[frame.complete_to : token.start()].strip(" \t\r\n,"))


def _is_closed(string: str) -> bool:
    if len(string) < 2 or not string.endswith('"'):
        return False
    body = string[1:-1]
    return (len(body) - len(body.rstrip("\\"))) % 2 == 0


def _tidy_token(match: re.Match[str]) -> str:
    token = match[0]
    match match.lastgroup:
        case "comma":
            return ""
        case "key":
            return f'{match["gap"]}"{match["key"]}"'
        case "word":
            return _LITERALS.get(token, "null")
        case "single" | "curly":
            return _requote(token)
        case _:
            return token


def _requote(token: str) -> str:
    """Put a string of other quotes into double ones; one that never closes stays open."""
    closed = len(token) > 1 and token[-1] in "'\u201d"
    body = token[1:-1] if closed else token[1:]
    return '"' + _QUOTES_INSIDE.sub(_requote_inside, body) + ('"' if closed else "")


def _requote_inside(match: re.Match[str]) -> str:
    escaped = match["escaped"]
    if escaped == "'":
        return "'"
    return match[0] if escaped else '\\"'
