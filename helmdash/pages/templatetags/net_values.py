"""How net values are shown: with their sign; grey where unknown; with how many a sum leaves out."""

from __future__ import annotations

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from helmdash.core.evidence.net_value import TokenSum, UsdSum
from helmdash.pages.parts import net_value, words
from helmdash.pages.templatetags.formats import dash

register = template.Library()
register.filter("kind_of_shortening", net_value.kind_words)
register.filter("why_no_net", net_value.why_no_net)


@register.simple_tag
def signed_tokens(value: int | None, why: str = "not reported") -> SafeString:
    """A gain or a loss in tokens."""
    return dash(why) if value is None else _signed(words.signed(value), is_loss=value < 0)


@register.simple_tag
def signed_usd(value: float | None, why: str = "no price in its budget") -> SafeString:
    """A gain or a loss in USD."""
    if value is None:
        return dash(why)
    return _signed(net_value.signed_dollars(value), is_loss=value < 0)


@register.simple_tag
def sum_of(value: TokenSum | UsdSum, why: str = "none is known") -> SafeString:
    """A sum, and how many are not in it."""
    if isinstance(value, UsdSum):
        shown = signed_usd(value.sum, why)
    else:
        shown = signed_tokens(value.sum, why)
    if not value.unknown:
        return shown
    return format_html('{}<span class="sub">{} unknown</span>', shown, f"{value.unknown:,}")


def _signed(text: str, *, is_loss: bool) -> SafeString:
    marks = mark_safe(' class="loss"') if is_loss else ""
    return format_html("<span{}>{}</span>", marks, text)
