"""What a body says that is not the JSON it should be: a proxy's page of HTML, or plain text."""

from __future__ import annotations

import html
import re

# More than anything that says something takes; a page says it in its title or at its top.
LONGEST_TEXT_CHARS = 4000

_TITLE = re.compile(r"<title[^<>]*>([^<]*)", re.IGNORECASE)
# One that never closes hides all that follows.
_HIDDEN = re.compile(r"<(script|style|head)\b.*?(?:</\1\s*>|\Z)", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<[^<>]*>")


def visible_text(body: bytes) -> str:
    """The words of a body, with single blanks between them; of a page its title, else its text.

    "" where there are none. Never raises.
    """
    # Cut before the tags are looked for: a hostile page must not cost time.
    text = body[:LONGEST_TEXT_CHARS].decode("utf-8", "replace").removeprefix("\ufeff")
    if "<" in text:
        text = _text_of_page(text)
    return " ".join(text.split())


def _text_of_page(page: str) -> str:
    title = _TITLE.search(page)
    if title is not None and title[1].strip():
        return html.unescape(title[1])
    return html.unescape(_TAG.sub(" ", _HIDDEN.sub(" ", page)))
