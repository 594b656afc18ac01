"""Going somewhere by name: pages, ids, models, saved views, actions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.http import HttpResponse
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from helmdash.pages import scope
from helmdash.pages.parts.places import ACTIONS, PAGES, places
from helmdash.pages.render import PageRequest, show
from helmdash.queries import finder
from helmdash.queries.lists.saved_views import find_views

# As long as the longest id.
_MOST_CHARS = 255
_TITLES: dict[finder.Kind, str] = {
    "conversation": "Conversations",
    "call": "Calls",
    "plan": "Plans",
    "fit": "Trims",
    "model": "Models",
}


@dataclass(frozen=True, slots=True)
class Way:
    """Where one line leads to; about: what stands beside its name. is_id: the name is an id."""

    name: str
    address: str
    about: str = ""
    is_id: bool = False


@require_safe
def find_page(request: PageRequest) -> HttpResponse:
    """The page of what was found, or for the palette its options alone."""
    scoped = scope.read(request)
    text = request.GET.get("q", "").strip()[:_MOST_CHARS]
    groups: dict[str, list[Way]] = {}
    for found in finder.find(project_id=scoped.project.id, text=text):
        groups.setdefault(_TITLES[found.kind], []).extend(_ways(found))
    views = find_views(project_id=scoped.project.id, user_id=request.user.pk, text=text)
    if views:
        groups["Saved views"] = [
            Way(each.name, f"{reverse(each.noun)}?{each.address or 'view=all'}", each.noun)
            for each in views
        ]
    for title, among in (("Pages", PAGES), ("Actions", ACTIONS)):
        ways = [
            Way(each.label, each.address) for each in places(among, text=text, rights=scoped.may)
        ]
        if ways:
            groups[title] = ways
    return show(
        request,
        "pages/find.html",
        {"text": text, "groups": groups, "count": sum(map(len, groups.values()))},
        fragment="pages/_found.html",
    )


def _ways(found: finder.Found) -> Iterator[Way]:
    if found.kind == "model":
        query = urlencode({"model": found.id})
        yield Way(found.id, f"{reverse('calls')}?{query}", "its calls", is_id=True)
        yield Way(found.id, f"{reverse('budgets')}?{query}", "its budget", is_id=True)
        return
    view = "trim" if found.kind == "fit" else found.kind
    yield Way(found.id, reverse(view, args=[found.id]), found.about, is_id=True)
