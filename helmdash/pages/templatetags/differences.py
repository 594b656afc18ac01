"""What one text lost and another gained, as markup."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from django import template
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from helmdash.core.text.differences import Change, Part

register = template.Library()

_ELEMENTS: Final = {Change.GONE: "del", Change.NEW: "ins"}
# A stroke through what indents a line reads as dashes in front of it.
_BREAKS: Final = re.compile(r"(\s*\n\s*)")


@register.filter
def marked(parts: Iterable[Part]) -> SafeString:
    """Parts with what went as <del> and what came as <ins>, line by line: breaks between lines, and
    what indents them, bear no mark."""
    return mark_safe("".join(_marked(part) for part in parts))  # noqa: S308  (texts are escaped)


def _marked(part: Part) -> str:
    element = _ELEMENTS.get(part.change)
    if element is None:
        return escape(part.text)
    return "".join(
        escape(piece) if at % 2 or not piece else f"<{element}>{escape(piece)}</{element}>"
        for at, piece in enumerate(_BREAKS.split(part.text))
    )
