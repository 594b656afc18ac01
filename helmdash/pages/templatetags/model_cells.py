"""Cells of the tables on the models page: some five hundred, each with a link of its own.

Written by functions and not by templates, which take several times as long for as many.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from urllib.parse import quote_plus, urlencode

from django import template
from django.urls import reverse
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from helmdash.core.calls.outcomes import CallOutcome, causes_of
from helmdash.pages.parts import words
from helmdash.pages.parts.heat_map import Cell
from helmdash.pages.templatetags import formats
from helmdash.queries.models import OTHER, ModelRow, Rate

register = template.Library()

_FAILED = (
    CallOutcome.TRUNCATED,
    CallOutcome.EMPTY,
    CallOutcome.UNDECODABLE,
    CallOutcome.FAILED,
)
# Stands for what differs between the links of a row; no name has it.
_HOLE = "\0"


@register.simple_tag(takes_context=True)
def failure_cells(context: template.Context, row: ModelRow) -> SafeString:
    """How many of a row's calls ended in each way that is not clean, as the way to these calls: by
    their causes."""
    carried: Mapping[str, str] = context["form"].carried if "form" in context else {}
    asked = {"model": row.model, "query": _HOLE, "purpose": row.purpose, **carried}
    # What figures count together no list of calls can be asked for.
    told = urlencode({name: said for name, said in asked.items() if said and said != OTHER})
    page = escape(f"{reverse('calls')}?{told}")
    return mark_safe(  # noqa: S308  (the address is escaped, the rest is numbers and names of ours)
        "".join(_failure_cell(getattr(row, outcome), outcome, page) for outcome in _FAILED)
    )


def _failure_cell(rate: Rate, outcome: CallOutcome, page: str) -> str:
    said: str = formats.rate(rate)
    if rate.count:
        address = page.replace(quote_plus(_HOLE), _causes(outcome))
        said = f'<a class="failures" href="{address}">{said}</a>'
    return f'<td class="num" data-name="{outcome.value.title()}">{said}</td>'


@cache
def _causes(outcome: CallOutcome) -> str:
    """Part of an address: the query for calls with one of an outcome's causes."""
    return quote_plus(f"cause:{','.join(cause.value for cause in causes_of(outcome))}")


@register.simple_tag
def heat_cell(cell: Cell) -> SafeString:
    """The share of clean calls in a band of sizes, of how many and how sure, as the way to them."""
    clean = cell.clean
    if clean.n:
        said = (
            f'<a href="{reverse("calls")}?{escape(cell.query)}">'
            f'<b>{escape(words.rounded(clean.share))}</b><span class="sub">n {clean.n:,} ·'
            f" {escape(words.rounded(clean.low))} to {escape(words.rounded(clean.high))}</span></a>"
        )
    else:
        said = formats.dash("no call of this size")
    return mark_safe(  # noqa: S308  (as above)
        f'<td class="num {cell.shade}" data-name="{escape(cell.band or "All sizes")}">{said}</td>'
    )
