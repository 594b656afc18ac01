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
# An attribute whose value begins with a slash. Its name is looked at afterwards: a search that
# begins with letters tries each letter of a page, and takes ten times as long.
_ADDRESS = re.compile(r'="(/[^"]*)"')
_ATTRIBUTES = ("href", "action", "hx-get", "hx-post", "data-live")
# In HTML an apostrophe of an id is `&#x27;`.
_HTML_FRAGMENT = re.compile(r"(?<!&)#")
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
    if urlsplit(address).netloc or not address.startswith("/"):
        return address
    return _with(address, f"project={quote(slug)}", joint="&")


def name_project(page: str, slug: str) -> str:
    """A page of HTML in which each link and form names its project."""
    wanted = f"project={quote(slug)}"
    first, *forms = page.split("<form")
    return _name_links(first, wanted) + "".join(_name_form(form, slug, wanted) for form in forms)


def _name_form(form: str, slug: str, wanted: str) -> str:
    """A form and what comes after it. A browser drops the query of the action of one that asks,
    HTMX appends its fields to it: such a one has a field instead."""
    tag, end, rest = form.partition(">")
    if 'method="get"' not in tag:
        return "<form" + _name_links(form, wanted)
    field = f'<input type="hidden" name="project" value="{quote(slug)}">'
    return f"<form{tag}{end}{field}{_name_links(rest, wanted)}"


def _name_links(part: str, wanted: str) -> str:
    def named(found: re.Match[str]) -> str:
        if not part.endswith(_ATTRIBUTES, 0, found.start()):
            return found[0]
        return f'="{_with(found[1], wanted, joint="&amp;")}"'

    return _ADDRESS.sub(named, part)


def _parted(address: str, *, is_html: bool) -> tuple[str, str, str]:
    """An address before its `#`, the `#`, and what comes after it."""
    if not is_html:
        return address.partition("#")
    whole, *fragment = _HTML_FRAGMENT.split(address, maxsplit=1)
    return whole, "#" if fragment else "", "".join(fragment)


def _with(address: str, wanted: str, *, joint: str) -> str:
    whole, mark, fragment = _parted(address, is_html=joint != "&")
    # A conversation's name may hold what looks like a query.
    path, _, query = whole.partition("?")
    if address.startswith(_OF_NO_PROJECT) or _NAMED.search(query):
        return address
    return f"{path}?{query + joint if query else ''}{wanted}{mark}{fragment}"
