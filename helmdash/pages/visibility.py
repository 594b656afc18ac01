"""Unseen characters in pages: escapes wherever they stand, whatever template put them there.

One pass over the finished page, so that no template, tag or page of the admin can forget it. What a
form sends back stays as it is: values of fields, and texts to be edited; suggestions for fields
are left out where they would have to be changed. `<pre>` shows texts that
somebody wrote (core.text.visible.visible_text), unless it has an id: those are snippets, made of
names. Names stand in elements whose class begins with `id`, and in titles; there ends of lines
show, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from helmdash.core.text.visible import has_unseen, visible_lines, visible_name, visible_text

# Ends of lines and tabs in a name. Each begins with a literal, which is looked for quickly.
_LINES_IN_NAMES = tuple(
    re.compile(pattern)
    for pattern in (
        r'title="[^"]*[\t\n\r]',
        r'aria-label="[^"]*[\t\n\r]',
        r'class="id[ "][^>]*>[^<]*[\t\n\r]',
    )
)
_PARTS = re.compile(
    r"(?P<offered><datalist\b.*?</datalist>)"
    r'|(?P<kept><textarea\b.*?</textarea>|<script\b.*?</script>|\bvalue="[^"]*")'
    r"|(?P<text><pre\b(?![^>]*\sid=).*?</pre>)"
    r'|(?P<name>\b(?:title|aria-label)="[^"]*"|class="id[ "][^>]*>[^<]*)',
    re.DOTALL | re.IGNORECASE,
)


_OPTION = re.compile(r"<option\b[^>]*>")


class VisibilityMiddleware:
    """The innermost one: what comes after it already counts the bytes of the page."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self._get_response(request)
        if isinstance(response, HttpResponse) and _is_page(response):
            page = response.content.decode(response.charset, "surrogatepass")
            if is_suspect(page):
                response.content = visible_page(page).encode(response.charset, "surrogatepass")
        return response


def is_suspect(page: str) -> bool:
    """Whether anything may have to be shown: most pages are let go after a quick look."""
    return has_unseen(page) or any(each.search(page) for each in _LINES_IN_NAMES)


def visible_page(page: str) -> str:
    """A page of HTML with all that is unseen in it shown."""
    shown = []
    end = 0
    for part in _PARTS.finditer(page):
        shown.append(visible_lines(page[end : part.start()]))
        shown.append(_visible_part(part))
        end = part.end()
    return "".join([*shown, visible_lines(page[end:])])


def _visible_part(part: re.Match[str]) -> str:
    if part["offered"]:
        return _OPTION.sub(_offered, part["offered"])
    if part["kept"]:
        return part["kept"]
    if part["text"]:
        return visible_text(part["text"])
    return visible_name(part["name"])


def _offered(option: re.Match[str]) -> str:
    """A suggestion for a field is both shown and sent: one with what is unseen is not made."""
    return "" if has_unseen(option[0]) else option[0]


def _is_page(response: HttpResponse) -> bool:
    return response.get("Content-Type", "").startswith("text/html")
