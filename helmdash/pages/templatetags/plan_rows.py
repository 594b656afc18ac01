"""Rows of the lists of plans and of fits, written by functions as those of calls are
(`list_rows`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django import template
from django.utils.html import escape
from django.utils.safestring import SafeString
from django.utils.text import Truncator

from helmdash.core.calls.failures import FailureCause
from helmdash.pages.parts import words
from helmdash.pages.parts.lists.row_markup import markup, row_link, sub
from helmdash.pages.parts.receipts import flags
from helmdash.pages.templatetags import formats
from helmdash.pages.templatetags.links import added_cells
from helmdash.queries.fitting.fitting import FitView
from helmdash.queries.plans.items import PlanItem

register = template.Library()

_MOST_INTENT = 110
_MOST_TOOLS, _MOST_STEPS = 6, 3


@register.simple_tag(takes_context=True)
def plan_rows(
    context: template.Context, items: Iterable[PlanItem], shown: Mapping[str, Any]
) -> SafeString:
    """The rows of a table of plans, with the columns that are shown."""
    return markup("".join(_plan_row(context, plan, shown) for plan in items))


@register.simple_tag(takes_context=True)
def fit_rows(
    context: template.Context, items: Iterable[FitView], shown: Mapping[str, Any]
) -> SafeString:
    """The rows of a table of fits, with the columns that are shown."""
    return markup("".join(_fit_row(context, fit, shown) for fit in items))


# --- a plan ---------------------------------------------------------------------------------------


def _plan_row(context: template.Context, plan: PlanItem, shown: Mapping[str, Any]) -> str:
    cells = [f"<td>{formats.outcome(plan.outcome)}{_why(plan)}</td>", _plan_name(plan)]
    if shown.get("steps"):
        cells.append(f"<td>{_steps(plan)}</td>")
    if shown.get("before"):
        cells.append(f'<td class="wide">{_catalog(plan)}</td>')
    if shown.get("latency"):
        cells.append(f'<td class="num wide">{_latency(plan)}</td>')
    cells.append(added_cells(context, shown["added"], plan))
    if shown.get("at"):
        cells.append(f'<td class="num">{formats.when(context, plan.at)}</td>')
    return f"<tr>{''.join(cells)}</tr>"


def _why(plan: PlanItem) -> str:
    """A cause in plain words, its code below."""
    if not plan.cause or plan.cause == plan.outcome:
        return ""
    said = escape(words.cause_sentence(FailureCause(plan.cause)))
    return f'{sub(said)}<span class="sub mono">{escape(plan.cause)}</span>'


def _plan_name(plan: PlanItem) -> str:
    intent = plan.intent
    said = escape(words.ends(intent, _MOST_INTENT) if intent else plan.intent_sha)
    css = "intent" if intent else "intent id quiet"
    told = [] if intent else ["text not kept"]
    told += [escape(plan.kind), escape(plan.model)]
    if plan.prompt_variant and plan.kind == "plan":
        told.append(escape(plan.prompt_variant))
    link = row_link("plan", plan.id, prefix="p-", said=said, css=css)
    return f'<th scope="row">{link}{sub(" · ".join(told))}</th>'


def _steps(plan: PlanItem) -> str:
    """The first tools, how many more there are, and steps without one."""
    tools, gaps = plan.tools, plan.gaps
    parts = [f'<span class="tag mono">{escape(tool)}</span>' for tool in tools[:_MOST_TOOLS]]
    parts += _more(len(tools) - _MOST_TOOLS)
    if gaps:
        parts.append(f'<span class="tag on-gap">{gaps:,} gap{"" if gaps == 1 else "s"}</span>')
    if not plan.steps:
        parts.append('<span class="none">no step</span>')
    return f'<span class="tags">{"".join(parts)}</span>'


def _catalog(plan: PlanItem) -> str:
    before, after = plan.before_bytes, plan.after_bytes
    if before is None or after is None:
        return formats.dash("no catalog was shown")
    return (
        f'<span class="fill"><span>{before:,} to {after:,} bytes</span>'
        f"{formats.before_after(before, after)}{sub(_cut(before, after))}</span>"
    )


def _latency(plan: PlanItem) -> str:
    if plan.latency_ms is None:
        return formats.dash("not over yet")
    return words.seconds(plan.latency_ms)


# --- a fit ----------------------------------------------------------------------------------------


def _fit_row(context: template.Context, fit: FitView, shown: Mapping[str, Any]) -> str:
    cells = [_fit_name(fit)]
    if shown.get("saved"):
        cells.append(f"<td>{_saved(fit)}</td>")
    if shown.get("before"):
        cells.append(f'<td class="num wide">{fit.before_bytes:,}</td>')
    if shown.get("after"):
        cells.append(f'<td class="num wide">{fit.after_bytes:,}</td>')
    if shown.get("removed"):
        cells.append(f'<td class="num wide">{len(_listed(fit, "removed")):,}</td>')
    if shown.get("dropped"):
        cells.append(f'<td class="wide">{_dropped(fit)}{_flags(fit)}</td>')
    cells.append(added_cells(context, shown["added"], fit))
    if shown.get("at"):
        cells.append(f'<td class="num">{formats.when(context, fit.created_at)}</td>')
    return f"<tr>{''.join(cells)}</tr>"


def _fit_name(fit: FitView) -> str:
    link = row_link("trim", fit.id, prefix="f-", said=escape(fit.model))
    intent = Truncator(fit.intent or "intent not stored").chars(60)
    return f'<th scope="row">{link}{sub(escape(intent))}</th>'


def _saved(fit: FitView) -> str:
    before, after = fit.before_bytes, fit.after_bytes
    said = _cut(before, after) if fit.fits else '<span class="cause">does not fit</span>'
    return (
        f'<span class="fill">{formats.before_after(before, after)}<span>{said}'
        f'<span class="sub only-narrow">{before:,} to {after:,} bytes</span></span></span>'
    )


def _dropped(fit: FitView) -> str:
    steps = _listed(fit, "steps")
    parts = [
        f'<span class="tag mono">{escape(each["label"])}</span>' for each in steps[:_MOST_STEPS]
    ]
    parts += _more(len(steps) - _MOST_STEPS)
    listed = "".join(parts) or '<span class="none">nothing</span>'
    return f'<span class="tags">{listed}</span>'


def _listed(fit: FitView, name: str) -> Sequence[Any]:
    found = fit.trim.get(name)
    return found if isinstance(found, list) else ()


def _flags(fit: FitView) -> str:
    listed = "".join(
        f"<li>{f'<span>{escape(each.words)}</span> ' if each.words else ''}"
        f"<code>{escape(each.label)}</code></li>"
        for each in flags(fit.trim)
    )
    return f'<ul class="plain-list small flags">{listed}</ul>' if listed else ""


# --- both -----------------------------------------------------------------------------------------


def _cut(before: int, after: int) -> str:
    return "nothing cut" if after == before else f"{escape(words.removed_share(before, after))} cut"


def _more(count: int) -> list[str]:
    return [f'<span class="none">and {count} more</span>'] if count > 0 else []
