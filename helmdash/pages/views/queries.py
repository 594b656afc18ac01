"""What may stand in a query bar: completions while somebody types, and values, counted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from django.http import Http404, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from helmdash.core.text.query_terms import MOST_CHARS, Field, term_text
from helmdash.pages import scope
from helmdash.pages.lists.list_forms import ListForm
from helmdash.pages.lists.lists import LISTS, ListKind
from helmdash.pages.render import PageRequest, show
from helmdash.pages.zones import reader_zone
from helmdash.queries.lists.facets import Facets

_MOST_OPTIONS: Final = 30
# The id of the list of completions, by which HTMX says what it asks for.
_COMPLETIONS: Final = "query-words"


@require_safe
def query_help(request: PageRequest, noun: str) -> HttpResponse:
    """The values that the items of a list have, as links that narrow it; for the bar that somebody
    types in, what may come next. Raises Http404 for a list that there is none of."""
    kind = LISTS.get(noun)
    if kind is None:
        raise Http404(f"There is no list {noun}: lists are {', '.join(LISTS)}.")
    request.now = timezone.now()
    if request.htmx and request.htmx.target == _COMPLETIONS:
        return show(request, "pages/_query_words.html", {"options": [*_completions(request, kind)]})
    form, found = _counted(request, kind, request.GET.get("query", ""))
    lines = [*_lines(request, kind, found)] if found else []
    context = {"form": form, "found": found, "lines": lines, "kind": kind}
    return show(
        request,
        "pages/query.html",
        context,
        fragment="pages/_facets.html",
        status=200 if found else 400,
    )


def _counted(request: PageRequest, kind: ListKind, query: str) -> tuple[ListForm, Facets | None]:
    data = request.GET.copy()
    data["query"] = query
    form = kind.form(data, now=request.now, zone=reader_zone(request))
    if not form.is_valid():
        return form, None
    project = scope.current_project(request)
    return form, kind.counted(project.id, form, request.now)


def _lines(
    request: PageRequest, kind: ListKind, found: Facets
) -> Iterator[tuple[str, list[tuple[str, int, str]], int]]:
    """For each field its values, their counts and the address of the list with them, and how many
    values are not shown."""
    for facet in found.facets:
        if facet.values:
            values = [
                (value, rows, _address(request, kind, term_text(facet.field, value)))
                for value, rows in facet.values
            ]
            yield facet.field, values, facet.more


def _address(request: PageRequest, kind: ListKind, term: str) -> str:
    data = request.GET.copy()
    data.pop("cursor", None)
    data["query"] = f"{data.get('query', '')} {term}".strip()
    return f"{reverse(kind.noun)}?{data.urlencode()}"


def _completions(request: PageRequest, kind: ListKind) -> Iterator[tuple[str, str]]:
    """Whole texts of the bar, each with what it is."""
    typed = request.GET.get("query", "")[:MOST_CHARS]
    head, _, last = typed.rpartition(" ")
    before = f"{head} " if head else ""
    minus = "-" if last.startswith("-") else ""
    name, colon, begun = last.removeprefix("-").partition(":")
    if not colon:
        for field in kind.fields:
            if field.name.startswith(name.lower()):
                yield f"{before}{minus}{field.name}:", field.meaning
        return
    asked = next((field for field in kind.fields if field.name == name.lower()), None)
    if asked is not None:
        _, found = _counted(request, kind, head)
        for value, meaning in _values(request, kind, asked, begun.strip('"'), found):
            yield f"{before}{minus}{term_text(asked.name, value)}", meaning


def _values(
    request: PageRequest, kind: ListKind, asked: Field, begun: str, found: Facets | None
) -> Iterator[tuple[str, str]]:
    """Values that begin, or go on, with what is typed; those that the items have first."""
    known = kind.offered(scope.current_project(request).id, asked)
    fitting = [each for each in known if begun.lower() in each.lower()]
    counts = {each: found.count(asked.name, each) if found else 0 for each in fitting}
    ranked = sorted(fitting, key=lambda each: -counts[each])
    for value in ranked[:_MOST_OPTIONS]:
        some = "" if found is None or found.is_all else f" of the newest {found.rows:,}"
        yield (
            value,
            f"{counts[value]:,} {kind.item if counts[value] == 1 else kind.items}{some}"
            if counts[value]
            else "",
        )
