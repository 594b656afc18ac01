"""The rates of the first page: what each is called, the way to its calls, and how it went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django import template
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from helmdash.pages.parts.charts.sparkline import HEIGHT, WIDTH, sparkline
from helmdash.queries.calls.rates import RateName

register = template.Library()


@dataclass(frozen=True, slots=True, kw_only=True)
class RateWords:
    """query: part of the address that lists the calls. unknown: why there is no share."""

    name: str
    query: str
    unknown: str = "no call in this range"


_WORDS = {
    RateName.TRUNCATED: RateWords(name="Truncated", query="query=outcome:truncated"),
    RateName.EMPTY: RateWords(name="Empty", query="query=outcome:empty"),
    RateName.CUT: RateWords(name="Suspected cuts", query="query=has:cut"),
    RateName.UNKNOWN: RateWords(name="Level unknown", query="level=unknown"),
    RateName.FROM_CACHE: RateWords(
        name="From cache", query="query=has:cached", unknown="no call told of its cache"
    ),
}


@register.filter
def rate_words(name: RateName) -> RateWords:
    """What a rate is called, and where its calls are."""
    return _WORDS[name]


@register.simple_tag
def spark(shares: Sequence[float | None]) -> SafeString | str:
    """How a rate went, as a line without axes; nothing where too little is known."""
    drawn = sparkline(shares)
    if drawn is None:
        return ""
    text = escape(drawn.text)
    return mark_safe(  # noqa: S308  (the text is escaped, the path numbers of ours)
        f'<svg class="spark" viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" role="img"'
        f' aria-label="{text}"><title>{text}</title><path d="{drawn.path}"/></svg>'
    )
