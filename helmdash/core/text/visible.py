"""Characters that nobody sees, made visible where names and texts are shown to people.

Names come from clients: model ids, keys, packs, callers, titles. A control character in one moves a
terminal's cursor, a bidirectional override turns what follows it around, and a zero-width character
makes two names look like one. They are stored as they came and shown as escapes: \\x1b, \\u202e.
"""

from __future__ import annotations

import re

# C0 without tab, line feed and return, DEL, and C1; line and paragraph separators; what turns the
# direction of text, for good or until it is ended; annotations and language tags; lone surrogates.
_STEERING = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u206f"
    "\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff"
)
# What takes no room or looks like a blank, and marks of direction. Languages and emoji need some of
# these, so that texts keep them; in a name they only hide.
_UNSEEN = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060-\u2065\u2800\u3164"
    "\ufeff\uffa0"
)
_IN_TEXT = re.compile(f"[{_STEERING}]")
_IN_LINES = re.compile(f"[{_STEERING}{_UNSEEN}]")
_IN_NAME = re.compile(f"[\t\n\r{_STEERING}{_UNSEEN}]")
_SHORT = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}


def visible_name(name: str) -> str:
    """A name as people see it: every unseen character is an escape.

    >>> visible_name("gpt\\u202e4\\n")
    'gpt\\\\u202e4\\\\n'
    """
    return _IN_NAME.sub(_escape, name)


def visible_lines(text: str) -> str:
    """The same for a text of lines that names stand in: tabs and ends of lines stay.

    >>> visible_lines("a\\tb\\x1b[31m\\n")
    'a\\tb\\\\x1b[31m\\n'
    """
    return _IN_LINES.sub(_escape, text)


def visible_text(text: str) -> str:
    """A text that somebody wrote: also joiners and marks that its language needs stay."""
    return _IN_TEXT.sub(_escape, text)


def has_unseen(text: str) -> bool:
    """Whether `visible_lines` would change a text."""
    return _IN_LINES.search(text) is not None


def _escape(found: re.Match[str]) -> str:
    char = found.group()
    code = ord(char)
    if char in _SHORT:
        return _SHORT[char]
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
