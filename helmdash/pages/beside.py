"""What lies open beside a list: one of its items, with the way to its neighbours.

The list's own address says it (`open=<id>`): sent, reloaded or gone back to, it is the same. A
script asks for the panel alone; without one the rows lead to pages, and an address with a panel is
drawn with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps

from django.http import HttpResponse
from django.utils import timezone

from helmdash.pages.render import PageRequest, show
from helmdash.queries.lists.paging import Neighbours

# The id of the panel's element, by which HTMX says that it asks for no more.
_PANEL = "panel"


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """An item to be shown.

    noun: what it is. page: the address of its whole page. template: what is drawn of `values`.
    neighbours: those in the list. compared: where it is compared with another; "": nowhere.
    """

    noun: str
    page: str
    template: str
    values: Mapping[str, object]
    neighbours: Neighbours
    compared: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """The place beside a list. name: what is asked for; "" is nothing. opened None: there is no
    such item."""

    name: str
    opened: Opened | None


Reader = Callable[[PageRequest, str], Opened | None]
View = Callable[[PageRequest], HttpResponse]


def beside(read: Reader) -> Callable[[View], View]:
    """A list beside which an item can lie open, as `read` finds it; None: the project has none of
    that id."""

    def decorate(view: View) -> View:
        @wraps(view)
        def answer(request: PageRequest) -> HttpResponse:
            is_part = bool(request.htmx) and request.htmx.target == _PANEL
            if request.htmx and not is_part:
                return view(request)
            name = request.GET.get("open", "")
            request.now = timezone.now()
            # No id holds a NUL, and PostgreSQL refuses the question.
            opened = read(request, name) if name and "\x00" not in name else None
            request.panel = Panel(name=name, opened=opened)
            if is_part:
                return show(request, "pages/_panel.html", {})
            return view(request)

        return answer

    return decorate
