"""The query bar and the controls beside it: one state, one address.

What a control can say moves from the bar into it, by a redirect; what none can say stays in the
bar. So an address has each filter once, whichever way somebody asked for it, and needs no script.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from django.forms import ChoiceField
from django.http import HttpResponse, HttpResponseRedirect, QueryDict

from helmdash.core.text.query_terms import Query, Term, written
from helmdash.pages.lists.list_forms import ListForm
from helmdash.pages.render import PageRequest

_BAR: Final = "query"
_SEARCH: Final = "q"


def settled(
    request: PageRequest, form: ListForm, controls: Mapping[str, str]
) -> HttpResponse | None:
    """A way to the address where controls say what they can of a query; None where they do, or it
    cannot be read. The bar goes before a control: it was typed later."""
    asked = form.cleaned_data.get(_BAR) if form.is_bound and not form.errors.get(_BAR) else None
    if not isinstance(asked, Query):
        return None
    data = request.GET.copy()
    said: dict[str, str] = {}
    often = Counter(term.field for term in asked.terms)
    kept = [
        term
        for term in asked.terms
        if often[term.field] > 1 or not _moved(term, form, controls, said)
    ]
    for name, value in said.items():
        data[name] = value
    if asked.words:
        data[_SEARCH] = asked.words
    if len(kept) == len(asked.terms) and not asked.words:
        return None
    data[_BAR] = written(kept)
    # Another list begins at its top.
    data.pop("cursor", None)
    address = f"{request.path}?{_without_blanks(data)}"
    if not request.htmx:
        return HttpResponseRedirect(address)
    # The controls change with the rows, so the whole page is asked for.
    response = HttpResponse(status=204)
    response["HX-Redirect"] = address
    return response


def _moved(term: Term, form: ListForm, controls: Mapping[str, str], said: dict[str, str]) -> bool:
    """Whether a control says the term, the only one of its field; then it does in `said`."""
    name, word = controls.get(term.field), term.single
    if name is None or word is None or name in said:
        return False
    field = form.fields[name]
    if isinstance(field, ChoiceField) and not field.valid_value(word):
        return False
    said[name] = word
    return True


def _without_blanks(data: QueryDict) -> str:
    for name in [name for name in data if not data[name]]:
        del data[name]
    return data.urlencode()
