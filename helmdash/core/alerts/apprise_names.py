"""Destinations of Apprise that the operator named: owners choose by name, and type no address."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

# Far more than one installation tells of anything, and a bound for a form's list.
MOST_NAMES: Final = 50
# Apprise takes longer ones; an address of 2,000 characters is a mistake, or a message.
_MOST_URL_CHARS: Final = 2000
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,59}", re.I | re.A)
_URL = re.compile(r"[a-z][a-z0-9+.-]*://\S+", re.I | re.A)


def parse_named_urls(text: str) -> Mapping[str, str]:
    """URLs by name, of `name=url` with blanks between: Apprise's URLs may hold commas.

    Raises ValueError, which says which entry is wrong and never what is in it.

    >>> dict(parse_named_urls("ops=json://example.org/a?x=1 family=ntfy://topic"))
    {'ops': 'json://example.org/a?x=1', 'family': 'ntfy://topic'}
    """
    found: dict[str, str] = {}
    for number, entry in enumerate(text.split(), start=1):
        name, sign, url = entry.partition("=")
        if not sign or not _NAME.fullmatch(name) or not _URL.fullmatch(url):
            raise ValueError(
                f"entry {number} is no name=url, with blanks between entries and none within "
                "(%20), and a name of up to 60 letters, digits, dots and dashes"
            )
        if len(url) > _MOST_URL_CHARS:
            raise ValueError(
                f"entry {number} has a URL of more than {_MOST_URL_CHARS:,} characters"
            )
        if name in found:
            raise ValueError(f"entry {number} has the name of an earlier one")
        found[name] = url
    if len(found) > MOST_NAMES:
        raise ValueError(f"has {len(found):,} entries; {MOST_NAMES} are the most")
    return found
