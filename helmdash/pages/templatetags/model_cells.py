"""Rows and cells of the tables on the models page: some five hundred, each with its own link.

Written by functions and not by templates, which take several times as long for as many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from urllib.parse import quote_plus, urlencode

from django import template
from django.template.defaultfilters import floatformat
from django.urls import reverse
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from helmdash.core.calls.outcomes import CallOutcome, causes_of
from helmdash.core.rollups.facts import NO_VARIANT
from helmdash.pages.parts import words
from helmdash.pages.parts.charts.heat_map import Cell
from helmdash.pages.parts.lists.row_markup import sub
from helmdash.pages.templatetags import formats
from helmdash.pages.templatetags.links import same_page
from helmdash.queries.calls.spending import ClientSpending, ModelSpending
from helmdash.queries.models import ModelRow, Rate

register = template.Library()

_FAILED = (
    CallOutcome.TRUNCATED,
    CallOutcome.EMPTY,
    CallOutcome.UNDECODABLE,
    CallOutcome.FAILED,
)
# Prompts that stay below this share of their limit would fit a model with a far smaller one; of
# fewer calls nobody should move to it.
_SMALL_SHARE = 0.1
_LEAST_MEASURED = 20
# Of a client's models, as many as a line holds.
_MOST_NAMED = 3
# Stands for what differs between the links of a row; no name has it.
_HOLE = "\0"


def _failure_cells(row: ModelRow, carried: Mapping[str, str], calls: str) -> str:
    """How many of a row's calls ended in each way that is not clean, as the way to these calls: by
    their causes."""
    page = escape(f"{calls}?{urlencode(_of_row(row, carried, query=_HOLE))}")
    return "".join(_failure_cell(getattr(row, outcome), outcome, page) for outcome in _FAILED)


def _of_row(row: ModelRow, carried: Mapping[str, str], *, query: str = "") -> dict[str, str]:
    """Filters of the list of calls that has just this row's, of these those of a query."""
    asked = {
        **row.asked(query),
        "purpose": row.purpose,
        "variant": row.prompt_variant or NO_VARIANT,
        **carried,
    }
    return {name: said for name, said in asked.items() if said}


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
            f" {_end(clean.low)} to {_end(clean.high)}</span></a>"
        )
    else:
        said = formats.dash("no call of this size")
    return mark_safe(  # noqa: S308  (the address is escaped, the rest is numbers and names of ours)
        f'<td class="num {cell.shade}" data-name="{escape(cell.band or "All sizes")}">{said}</td>'
    )


def _end(share: float | None) -> str:
    """One end of an interval, whose sign stays beside its number where a cell is narrow."""
    return escape(words.rounded(share)).replace(" ", "\u00a0")


@register.simple_tag(takes_context=True)
def rate_rows(context: template.Context, rows: Sequence[ModelRow]) -> SafeString:
    """How the calls of each row ended, and behind it why and at which sizes."""
    here = escape(same_page(context, model=_HOLE))
    calls = reverse("calls")
    carried: Mapping[str, str] = context["form"].carried if "form" in context else {}
    return mark_safe(  # noqa: S308  (what is no markup of ours is escaped below)
        "".join(_rate_row(row, here, calls, carried) for row in rows)
    )


def _rate_row(row: ModelRow, here: str, calls: str, carried: Mapping[str, str]) -> str:
    model, purpose, variant = escape(row.name), escape(row.purpose), row.prompt_variant
    address = here.replace(quote_plus(_HOLE), escape(quote_plus(row.name)))
    said = escape(variant) if variant else ""
    return (
        '<tbody class="rate"><tr>\n  <th scope="row">'
        f'<a class="id" data-row href="{address}" title="{escape(row.model_key)}">{model}</a>'
        f"{_spellings(row)}{_suspected(row, carried, calls)}</th>\n"
        f'  <td data-name="Purpose"><span><strong>{purpose}</strong>{_sub(said)}</span></td>\n'
        f'  <td data-name="Clean">{formats.interval(row.clean)}</td>\n'
        f"  {_failure_cells(row, carried, calls)}\n"
        '</tr><tr class="more-of"><td colspan="7"><details>'
        '<summary class="small">Finish reasons and prompt sizes<span class="sr">'
        f' of {model}, {purpose} {said}</span></summary><div class="two">\n'
        f'  <div><h3>Finish reasons</h3><ul class="tags bare">{_reasons(row)}</ul></div>\n'
        f'  <div><h3>Clean, by prompt size</h3><dl class="bands">{_sizes(row)}</dl></div>'
        "</div></details></td></tr></tbody>"
    )


def _spellings(row: ModelRow) -> str:
    others = () if row.is_shared else row.spellings[1:4]
    if not others:
        return ""
    more = " …" if len(row.spellings) > 4 else ""
    said = ", ".join(map(escape, others))
    return f'<span class="id sub" title="other spellings of the same model">{said}{more}</span>'


def _suspected(row: ModelRow, carried: Mapping[str, str], calls: str) -> str:
    if not row.suspected_cuts:
        return ""
    asked = escape(urlencode({**_of_row(row, carried), "level_reason": "suspected_cut"}))
    noun = "suspected cut" if row.suspected_cuts == 1 else "suspected cuts"
    return f'<a class="sub is-caution" href="{calls}?{asked}">{row.suspected_cuts:,} {noun}</a>'


def _reasons(row: ModelRow) -> str:
    told = ((escape(word) if word else "not reported", n) for word, n in row.finish_reasons)
    return "".join(f'<li class="tag">{said} {n:,} of {row.calls:,}</li>' for said, n in told)


def _sizes(row: ModelRow) -> str:
    bands = "".join(
        f"<div><dt>{escape(band.label)}</dt><dd>{formats.interval(band.clean)}</dd></div>"
        for band in row.bands
        if band.clean.n
    )
    if not row.unsized:
        return bands
    unsized = f"{row.unsized:,} of {row.calls:,} calls"
    return f'{bands}<div><dt>size not reported</dt><dd class="soft">{unsized}</dd></div>'


@register.simple_tag
def usage_rows(rows: Sequence[ModelRow]) -> SafeString:
    """How full each row's prompts were, what went in and came out, and what it cost; above them all
    rows together, where there are several."""
    all_of_them = _all_usage(rows) if len(rows) > 1 else ""
    return mark_safe(all_of_them + "".join(map(_usage_row, rows)))  # noqa: S308  (as above)


@register.simple_tag(takes_context=True)
def client_rows(context: template.Context, clients: Sequence[ClientSpending]) -> SafeString:
    """What each client's calls took, as the way to them; of any purpose."""
    carried = {k: v for k, v in context["form"].carried.items() if k != "purpose"}
    asked = context["form"].cleaned_data["model"]
    narrowed = carried | ({"model": asked} if asked else {})
    rows = (_client_row(each, carried, narrowed) for each in clients)
    return mark_safe("".join(rows))  # noqa: S308  (what is no markup of ours is escaped below)


def _client_row(each: ClientSpending, carried: dict[str, str], narrowed: dict[str, str]) -> str:
    who = {"client": each.client} if each.client else {"query": "-has:client"}
    said = escape(each.client) if each.client else "not named"
    cells = (
        ("Calls", f"{each.calls:,}"),
        ("Clean", escape(words.rounded(each.clean.share))),
        ("Tokens in", _tokens(each.prompt_tokens, each.told, each.calls)),
        ("Tokens out", _tokens(each.completion_tokens, each.answered, each.calls)),
        ("From cache", _cached(each)),
        ("Cost, USD", _usd(each.cost_usd, each.priced, each.calls)),
    )
    return (
        f'<tr>\n  <th scope="row"><a class="id" data-row href="{_calls_of(who | narrowed)}">{said}'
        f'</a></th>\n  <td class="whole-line" data-name="Models"><span>'
        f"{_models_of(each.models, who | carried)}</span></td>\n"
        + "".join(f'  <td class="num" data-name="{name}">{said}</td>\n' for name, said in cells)
        + "</tr>"
    )


def _models_of(models: Sequence[ModelSpending], asked: Mapping[str, str]) -> str:
    """Those with most tokens, each as the way to its calls of this client, and how many more."""
    query = asked.get("query", "")
    named = ", ".join(
        f'<a class="id" href="{_calls_of({**asked, **each.asked(query)})}">{escape(each.name)}</a>'
        for each in models[:_MOST_NAMED]
    )
    more = len(models) - _MOST_NAMED
    return f"{named} and {more:,} more" if more > 0 else named


def _calls_of(asked: Mapping[str, str]) -> str:
    return escape(f"{reverse('calls')}?{urlencode(asked)}")


@register.simple_tag
def speed_rows(rows: Sequence[ModelRow]) -> SafeString:
    """How fast each row's calls were."""
    return mark_safe("".join(map(_speed_row, rows)))  # noqa: S308  (as above)


def _all_usage(rows: Sequence[ModelRow]) -> str:
    """Sums alone: a share of all models together says nothing about one."""
    calls = sum(row.calls for row in rows)
    priced = [row for row in rows if row.cost_usd is not None]
    cost = sum(row.cost_usd or 0.0 for row in priced) if priced else None
    cells = (
        ("Tokens in", _sum([row.prompt_tokens for row in rows], _priced(rows), calls)),
        (
            "Tokens out",
            _sum([row.completion_tokens for row in rows], sum(r.answered for r in rows), calls),
        ),
        ("Cost, USD", _usd(cost, _priced(priced), calls)),
    )
    return (
        '<tr>\n  <th scope="row" colspan="2">All</th>\n'
        + "".join(f'  <td class="num" data-name="{name}">{said}</td>\n' for name, said in cells)
        # A row's last cell is set apart from the edge, which the cost is not at.
        + '  <td colspan="4"></td>\n</tr>'
    )


def _priced(rows: Sequence[ModelRow]) -> int:
    return sum(row.priced for row in rows)


def _sum(tokens: Sequence[int | None], told: int, calls: int) -> str:
    known = [each for each in tokens if each is not None]
    return _tokens(sum(known) if known else None, told, calls)


def _usage_row(row: ModelRow) -> str:
    return _row(
        row,
        ("Tokens in", _tokens(row.prompt_tokens, row.priced, row.calls)),
        ("Tokens out", _tokens(row.completion_tokens, row.answered, row.calls)),
        ("Cost, USD", _usd(row.cost_usd, row.priced, row.calls)),
        ("Fullness, p50", _fullness(row)),
        ("Fullness, p95", _nearly_all(row)),
        ("From cache", _cached(row)),
        ("Estimate", _estimate(row)),
    )


def _speed_row(row: ModelRow) -> str:
    return _row(
        row,
        ("Latency, p50", _timed(row.latency_p50_ms, row.timed, row.calls)),
        ("Latency, p95", _plain_time(row.latency_p95_ms)),
        ("Latency, p99", _plain_time(row.latency_p99_ms)),
        ("First token, p50", _timed(row.ttft_p50_ms, row.streamed, row.calls)),
        ("First token, p95", _plain_time(row.ttft_p95_ms)),
    )


def _row(row: ModelRow, *cells: tuple[str, str]) -> str:
    variant = escape(row.prompt_variant) if row.prompt_variant else ""
    return (
        f'<tr>\n  <th scope="row"><span class="id" title="{escape(row.model_key)}">'
        f"{escape(row.name)}</span></th>\n"
        f'  <td data-name="Purpose"><span>{escape(row.purpose)}{_sub(variant)}</span></td>\n'
        + "".join(f'  <td class="num" data-name="{name}">{said}</td>\n' for name, said in cells)
        + "</tr>"
    )


def _fullness(row: ModelRow) -> str:
    if row.fullness_p50 is None:
        return formats.dash("no limit is known, or no count of the prompt")
    said = escape(words.percent(row.fullness_p50))
    return f"<span>{said}{_of(row.measured, row.calls)}</span>"


def _nearly_all(row: ModelRow) -> str:
    """The 95th percentile, and whether a model with a far smaller window would have done."""
    if row.fullness_p95 is None:
        return formats.dash()
    is_small = row.fullness_p95 < _SMALL_SHARE and row.measured >= _LEAST_MEASURED
    hint = _sub("a tenth of the limit would do") if is_small else ""
    return f"<span>{escape(words.percent(row.fullness_p95))}{hint}</span>"


def _tokens(tokens: int | None, told: int, calls: int) -> str:
    if tokens is None:
        return formats.dash("not reported")
    return f"<span>{tokens:,}{_of(told, calls)}</span>"


def _plain_time(ms: int | None) -> str:
    return formats.dash() if ms is None else escape(words.seconds(ms))


def _timed(ms: int | None, told: int, calls: int) -> str:
    return formats.dash() if ms is None else f"<span>{_plain_time(ms)}{_of(told, calls)}</span>"


def _estimate(row: ModelRow) -> str:
    if row.estimate_ratio is None:
        return formats.dash("no call reported both its bytes and its tokens")
    meant = "median of our estimate, divided by the prompt tokens the provider counted"
    said = floatformat(row.estimate_ratio, 2)
    return f'<span title="{meant}">{said}{_sub(f"n {row.estimated:,}")}</span>'


def _cached(row: ModelRow | ClientSpending) -> str:
    if row.cached_share is None:
        return formats.dash()
    meant = "of all prompt tokens, those that the provider read from its cache"
    said = escape(words.rounded(row.cached_share))
    return f'<span title="{meant}">{said}{_of(row.cache_told, row.calls)}</span>'


def _usd(cost: float | None, priced: int, calls: int) -> str:
    if cost is None:
        return formats.dash("no price in its budget, or no usage reported")
    return f"<span>{escape(words.dollars(cost))}{_of(priced, calls)}</span>"


def _of(told: int, calls: int) -> str:
    """Of how many a figure is, where not all of the row told it."""
    return _sub(f"n {told:,}") if told != calls else ""


def _sub(said: str) -> str:
    return sub(said) if said else ""
