"""How net values are shown: with their sign; grey where unknown; with how many a sum leaves out."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

from django import template
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from helmdash.core.evidence.net_value import TokenSum, UsdSum
from helmdash.core.evidence.suggested import Counted
from helmdash.pages.parts import net_value, words
from helmdash.pages.templatetags.formats import dash
from helmdash.queries.evidence.shortened import Shortened

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


@register.simple_tag(takes_context=True)
def sum_of(
    context: template.Context,
    value: TokenSum | UsdSum,
    part: str,
    field: str = "",
    name: str = "",
    why: str = "none is known",
    *,
    is_gain: bool = True,
) -> SafeString:
    """A sum, which leads to what it adds up, and how many are not in it, which leads to these.
    part: what they are called; field, name: of a row of sums, as net_count has them. is_gain: with
    its sign."""
    if value.sum is None:
        shown = dash(why)
    elif isinstance(value, UsdSum):
        shown = _added_up(context, signed_usd(value.sum), field, name)
    else:
        said = signed_tokens(value.sum) if is_gain else format_html("{}", f"{value.sum:,}")
        shown = _added_up(context, said, field, name)
    if not value.unknown:
        return shown
    unknown = net_count(context, value.unknown, part, field, name)
    return format_html('{}<span class="sub">{} unknown</span>', shown, unknown)


def _added_up(context: template.Context, shown: SafeString, field: str, name: str) -> SafeString:
    """Where the single ones are that a sum is made of."""
    given = {**context["net_query"], **({field: name} if field else {})}
    return format_html('<a href="{}?{}#each">{}</a>', reverse("net-value"), urlencode(given), shown)


@register.simple_tag(takes_context=True)
def net_count(
    context: template.Context, count: int, part: str, field: str = "", name: str = ""
) -> SafeString:
    """How many of what a page adds up are such, which leads to them. field, name: of those of one
    kind or model alone; "": all."""
    shown = f"{count:,}"
    asked = context["net_query"]
    # Of some of them alone there is no list of some again.
    if not count or asked.get("part"):
        return format_html("{}", shown)
    given = {**asked, **({"part": part} if part else {}), **({field: name} if field else {})}
    return format_html('<a href="{}?{}">{}</a>', reverse("net-value"), urlencode(given), shown)


@register.simple_tag(takes_context=True)
def net_calls(
    context: template.Context, text: str, side: str, *, is_clean: bool = False
) -> SafeString:
    """A number of calls beside all that a page adds up, which leads to them."""
    return _to_calls(text, {**context["net_query"], "side": side}, is_clean)


@register.simple_tag
def own_calls(each: Shortened, counted: Counted, side: str) -> SafeString:
    """How many calls beside one shortened prompt were clean, of how many; both lead to them."""
    if not counted.calls:
        return mark_safe("0 of 0")
    if each.round_number:
        one = {"conversation": each.conversation, "round": each.round_number}
    else:
        one = {"call": each.after.id if each.after else ""}
    given = {**one, "side": side}
    return format_html(
        "{} of {}",
        _to_calls(str(counted.clean), given, is_clean=True),
        _to_calls(str(counted.calls), given, is_clean=False),
    )


def _to_calls(text: str, given: Mapping[str, object], is_clean: bool) -> SafeString:
    query = urlencode({**given, **({"only": "clean"} if is_clean else {})})
    return format_html('<a href="{}?{}">{}</a>', reverse("net-calls"), query, text)


def _signed(text: str, *, is_loss: bool) -> SafeString:
    marks = mark_safe(' class="loss"') if is_loss else ""
    return format_html("<span{}>{}</span>", marks, text)
