"""Ids that their clients chose as part of an address, where `.` and `..` would lead elsewhere.

Browsers resolve such a segment before they ask, written as `%2E` as well, and so do proxies. So it
gets a `~` before it, and one that has some gets one more:

>>> to_path("a/../b"), to_path("~.."), to_path("a/..b")
('a/~../b', '~~..', 'a/..b')
>>> from_path("a/~../b"), from_path("~~.."), from_path("a/..b")
('a/../b', '~..', 'a/..b')
"""

from __future__ import annotations

import re
from typing import Final

_DOTS: Final = re.compile(r"(?<![^/])(?=~*\.{1,2}(?:/|\Z))")
_WRITTEN: Final = re.compile(r"(?<![^/])~(?=~*\.{1,2}(?:/|\Z))")


def to_path(name: str) -> str:
    """The id as it stands in an address, but for the escapes of other characters."""
    return _DOTS.sub("~", name)


def from_path(text: str) -> str:
    """The id of which `to_path` made this."""
    return _WRITTEN.sub("", text)
