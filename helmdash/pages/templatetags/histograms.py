"""The bars of a histogram as markup.

Written by a function and not by the template: 120 bars are some 1,500 variables, and a template
takes longer for them than for all else on a page of a list.
"""

from __future__ import annotations

from urllib.parse import quote_plus

from django import template
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from helmdash.pages.parts.charts.histogram import Column, Histogram
from helmdash.pages.templatetags.links import same_page

register = template.Library()

_ESTIMATE = ' class="estimate"'


@register.simple_tag(takes_context=True)
def columns(context: template.Context, drawing: Histogram) -> SafeString:
    """Each bar as a link to its own stretch of this page; a hatched field where it is not known,
    and nothing where nothing was."""
    # They differ in the range alone, which comes last.
    page = same_page(context, range=None, since=None, until=None, cursor=None)
    page = escape(f"{page}{'&' if '?' in page else '?'}range=")
    return mark_safe(  # noqa: S308  (texts are escaped, the rest is numbers and names of ours)
        "".join(_column(each, drawing, page) for each in drawing.columns)
    )


def _column(column: Column, drawing: Histogram, page: str) -> str:
    if not column.is_known:
        return (
            f'<rect class="unknown-bar" x="{column.slot}%" width="{column.slot_width}%" y="6"'
            f' height="68"><title>{escape(column.text)}</title></rect>'
        )
    if not column.parts:
        return ""
    text = escape(column.text)
    parts = "".join(
        f'<rect class="{part.css_class}" x="{column.x}%" width="{column.width}%" y="{part.y}"'
        f' height="{part.height}"/>'
        for part in column.parts
    )
    return (
        f"<a{_ESTIMATE if column.is_estimate else ''}"
        f' href="{page}{quote_plus(column.range)}" data-range="{escape(column.range)}"'
        f' tabindex="{0 if column.is_first else -1}" aria-label="{text}"><title>{text}</title>'
        f'<rect class="slot" x="{column.slot}%" width="{column.slot_width}%" y="0"'
        f' height="{drawing.bottom}"/>{parts}</a>'
    )
