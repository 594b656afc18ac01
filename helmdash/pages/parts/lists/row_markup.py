"""What rows of all lists have: a link to the item, a second line, and where items lie."""

from __future__ import annotations

from functools import cache
from typing import Final
from urllib.parse import quote

from django.urls import reverse
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from helmdash.pages.parts.dot_segments import to_path

# As Django's own `reverse` leaves them: a name may hold slashes.
_SAFE: Final = "!$&'()*+,;=/~:@"


def row_link(page: str, name: str, *, prefix: str, said: str = "", css: str = "id") -> str:
    """The link of a row to its item, by which keys and the panel find it; what its column cuts
    stands in its title. said: escaped text, where it is not the name."""
    shown = escape(name)
    text = said or shown
    return (
        f'<a class="{css}" data-row="{shown}" id="{prefix}{escape(quote(name, safe=""))}"'
        f' href="{address_of(page, name)}" title="{text}">{text}</a>'
    )


def address_of(page: str, name: str) -> str:
    """Where an item lies, as text of an attribute."""
    return escape(f"{_place(page)}{quote(to_path(name), safe=_SAFE)}/")


def sub(said: str) -> str:
    """A second line. said: escaped."""
    return f'<span class="sub">{said}</span>'


def markup(text: str) -> SafeString:
    """Markup whose texts are escaped already."""
    return mark_safe(text)  # noqa: S308  (see above)


@cache
def _place(page: str) -> str:
    """Where the pages of a kind lie: asked once, for `reverse` takes longer than the rest of a
    row."""
    return reverse(page, args=["-"]).removesuffix("-/")
