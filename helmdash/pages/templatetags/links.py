"""Links that know where they are, and what the reader chose for all pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import template
from django.http import HttpRequest
from django.urls import reverse
from django.utils.encoding import escape_uri_path
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from helmdash.installation import COMMAND
from helmdash.pages.parts import words
from helmdash.pages.parts.lists.list_columns import LIST_COLUMNS, ListColumn, Shape
from helmdash.pages.templatetags import formats
from helmdash.pages.views.account.preferences import chosen_theme

register = template.Library()


@register.simple_tag(takes_context=True)
def nav(context: template.Context, name: str, label: str, *also: str) -> SafeString:
    """A link of the navigation; the one of the page that is shown says so. Pages about a list have
    its name in their address."""
    match = context["request"].resolver_match
    here = {match.url_name, match.kwargs.get("noun")} if match else set()
    is_here = not here.isdisjoint((name, *also))
    markup = '<a href="{}" aria-current="page">{}</a>' if is_here else '<a href="{}">{}</a>'
    return format_html(markup, reverse(name), label)


@register.simple_tag(takes_context=True)
def same_page(context: template.Context, **changes: str | None) -> str:
    """The address of this page with some of its query changed; None takes one out."""
    request: HttpRequest = context["request"]
    query = request.GET.copy()
    for name, value in changes.items():
        query.pop(name, None)
        if value is not None:
            query[name] = value
    path = escape_uri_path(request.path)
    return f"{path}?{query.urlencode()}" if query else path


@register.simple_tag(takes_context=True)
def same_query(context: template.Context, **changes: str | None) -> str:
    """The query of this page with some of it changed, for another page; "" where none is left."""
    whole = same_page(context, **changes)
    return whole[whole.index("?") :] if "?" in whole else ""


@register.simple_tag(takes_context=True)
def columns_of(context: template.Context, noun: str) -> dict[str, Any]:
    """Which columns a table of a list's items has: on the list's own page those that somebody
    chose, elsewhere those that it has at first."""
    is_list = "kind" in context and context["kind"].noun == noun
    return LIST_COLUMNS[noun].shown(context["form"].chosen if is_list else ())


@register.simple_tag(takes_context=True)
def added_heads(context: template.Context, added: Sequence[ListColumn]) -> SafeString:
    """The heads of the columns that somebody added."""
    heads = (
        head(context, each.order, each.label, "num" if each.is_number else "") for each in added
    )
    return format_html_join("", "{}", ((each,) for each in heads))


@register.simple_tag(takes_context=True)
def added_cells(context: template.Context, added: Sequence[ListColumn], item: object) -> SafeString:
    """The cells of one row in the columns that somebody added."""
    return format_html_join(
        "",
        '<td class="{}"><span class="only-narrow">{} </span>{}</td>',
        (
            (
                "num added" if each.is_number else "added",
                each.label,
                _written(context, each, each.value(item)),
            )
            for each in added
        ),
    )


def _written(context: template.Context, column: ListColumn, value: Any) -> SafeString | str:
    if value is None or value == "":
        return formats.dash("not known")
    match column.shape:
        case Shape.COUNT:
            return formats.thousands(value)
        case Shape.LATENCY:
            return words.seconds(value)
        case Shape.TIME:
            return formats.when(context, value)
        case Shape.YES_NO:
            return "yes" if value else "no"
        case _:
            return str(value)


@register.simple_tag(takes_context=True)
def carried(context: template.Context, *without: str) -> SafeString:
    """What this page's address says, as hidden fields of a form that changes the rest of it; every
    form names its project already."""
    request: HttpRequest = context["request"]
    return format_html_join(
        "",
        '<input type="hidden" name="{}" value="{}">',
        (
            (name, value)
            for name, values in request.GET.lists()
            if name not in (*without, *_PLACES, "project")
            for value in values
            if value
        ),
    )


@register.simple_tag(takes_context=True)
def head(context: template.Context, name: str, label: str, css: str = "") -> SafeString:
    """The head of a column. On the page of a list that can be sorted by it a link: the largest or
    newest first, and the other way round where they are."""
    form = context.get("form")
    classes = format_html(' class="{}"', css) if css else ""
    if name not in getattr(form, "orders", {}) or "kind" not in context:
        return format_html('<th scope="col"{}>{}</th>', classes, label)
    down = f"-{name}"
    sorting = form.sorting  # type: ignore[union-attr]
    wanted: str | None = name if sorting == down else down
    if wanted == form.first_order:  # type: ignore[union-attr]
        wanted = None
    said = {down: "descending", name: "ascending"}.get(sorting)
    return format_html(
        '<th scope="col"{}{}><a class="sort" href="{}">{}</a></th>',
        classes,
        format_html(' aria-sort="{}"', said) if said else "",
        same_page(context, sort=wanted, cursor=None, order=None),
        label,
    )


# What of a list's address says where in it somebody is, and not what it shows.
_PLACES = ("cursor", "open")


@register.simple_tag(takes_context=True)
def export_of(context: template.Context, kind: str) -> str:
    """The address of all that this list shows, as a file of a kind; "" where there is none."""
    request: HttpRequest = context["request"]
    noun = request.resolver_match.url_name if request.resolver_match else None
    if noun not in LIST_COLUMNS:
        return ""
    query = request.GET.copy()
    for name in _PLACES:
        query.pop(name, None)
    return f"{reverse('export', args=[noun, kind])}?{query.urlencode()}"


@register.simple_tag(takes_context=True)
def values_of_list(context: template.Context) -> str:
    """The page of the values that this list's items have."""
    request: HttpRequest = context["request"]
    query = request.GET.copy()
    for name in _PLACES:
        query.pop(name, None)
    noun = request.resolver_match.url_name if request.resolver_match else ""
    return f"{reverse('query', args=[noun])}?{query.urlencode()}"


@register.filter
def scheme(request: HttpRequest) -> str:
    """The color scheme the reader chose; empty leaves it to the system."""
    return chosen_theme(request)


@register.simple_tag
def command() -> str:
    """What begins each command that a page names: as it is called where HelmDash lies."""
    return COMMAND
