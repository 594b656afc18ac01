"""Addresses that say which project they are about.

Templates and views write plain addresses. One pass over the finished page puts `?project=` into
each, and so no link, form or redirect can forget it: a link that somebody is sent, and a second tab
with another project, show what they say. `in_project` does the same for a single address.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import quote, urlsplit

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from helmdash.pages import scope

# Addresses that are about no project; the admin's lists have filters of their own.
_OF_NO_PROJECT = ("//", "/static/", "/admin/", "/api/", "/login/", "/logout/", "/theme/")
_ADDRESSES = re.compile(
    # A browser drops the query of such a form's action, HTMX appends its fields to it.
    r'(?P<searched><form\b[^>]*\bmethod="get"[^>]*>)'
    r'|(?P<before>\b(?:href|action|formaction|hx-get|hx-post)=")(?P<address>/[^"]*)"'
)
# Of a query; as HTML has it, `;` ends an `&amp;`.
_NAMED = re.compile(r"(?:^|[&;])project=")


class AddressesMiddleware:
    """Around the views: pages, parts of pages and redirects go out with their project named."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self._get_response(request)
        slug = scope.shown(request)
        if slug is None or not isinstance(response, HttpResponse):
            return response
        if "Location" in response:
            response["Location"] = in_project(response["Location"], slug)
        elif response.get("Content-Type", "").startswith("text/html"):
            page = response.content.decode(response.charset, "surrogatepass")
            response.content = name_project(page, slug).encode(response.charset, "surrogatepass")
        return response


def in_project(address: str, slug: str) -> str:
    """An address of ours with its project named; one that names a project, or is about none, as it
    is."""
    return _named(address, slug, joint="&")


def name_project(page: str, slug: str) -> str:
    """A page of HTML in which each link and form names its project."""
    field = f'<input type="hidden" name="project" value="{quote(slug)}">'

    def named(part: re.Match[str]) -> str:
        if part["searched"]:
            return part["searched"] + field
        return f'{part["before"]}{_named(part["address"], slug, joint="&amp;")}"'

    return _ADDRESSES.sub(named, page)


def _named(address: str, slug: str, *, joint: str) -> str:
    parts = urlsplit(address)
    is_ours = not parts.netloc and address.startswith("/")
    whole, mark, fragment = address.partition("#")
    # A conversation's name may hold what looks like a query.
    path, _, query = whole.partition("?")
    if not is_ours or address.startswith(_OF_NO_PROJECT) or _NAMED.search(query):
        return address
    return f"{path}?{query + joint if query else ''}project={quote(slug)}{mark}{fragment}"
