"""Rows of the lists of calls and of conversations, each with a dozen values and links.

Written by functions and not by templates: fifty calls are some 3,500 lookups of a template, which
took three quarters of the time of the whole page.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any
from urllib.parse import quote

from django import template
from django.urls import reverse
from django.utils.html import escape
from django.utils.safestring import SafeString
from django.utils.text import slugify

from helmdash.core.budgets.levels import Level
from helmdash.core.calls.failures import FailureCause
from helmdash.pages.parts import words
from helmdash.pages.parts.lists.row_markup import address_of, markup, row_link, sub
from helmdash.pages.templatetags import formats
from helmdash.pages.templatetags.links import added_cells
from helmdash.queries.calls.calls import CallView
from helmdash.queries.conversations.conversations import ConversationView

register = template.Library()


@register.simple_tag(takes_context=True)
def call_rows(
    context: template.Context,
    items: Iterable[CallView],
    shown: Mapping[str, Any],
    with_conversation: bool | str = False,
) -> SafeString:
    """The rows of a table of calls: outcome first, then the call, then the columns that are
    shown."""
    with_column = bool(with_conversation and shown.get("conversation"))
    return markup(
        "".join(
            _call_row(
                context, item, shown, with_conversation=bool(with_conversation), column=with_column
            )
            for item in items
        )
    )


@register.simple_tag(takes_context=True)
def conversation_row(
    context: template.Context,
    item: ConversationView,
    shown: Mapping[str, Any],
    caption: str,
    why: bool | str = False,
) -> SafeString:
    """A row of a table of conversations: the level first, with the reasons to look where `why`."""
    cells = [
        f"<td>{formats.light(item)}{_known_level(item)}{_today(context, item)}</td>",
        _conversation_name(item, caption, why=bool(why)),
    ]
    if shown.get("prompt"):
        cells.append(f"<td>{formats.fill(item.health)}</td>")
    if shown.get("calls"):
        of_round = sub(f"round {item.round_number}") if item.round_number > 1 else ""
        cells.append(f'<td class="num wide">{item.generation:,}{of_round}</td>')
    if shown.get("failed"):
        cells.append(f'<td class="num wide">{_failed(item)}</td>')
    if shown.get("trimmed"):
        cells.append(f'<td class="num wide">{item.trims:,}</td>')
    cells.append(added_cells(context, shown["added"], item))
    if shown.get("latest"):
        cells.append(f'<td class="num">{formats.when(context, item.latest_at)}</td>')
    return markup(f"<tr>{''.join(cells)}</tr>")


def _today(context: template.Context, item: ConversationView) -> SafeString:
    return formats.today(context.get("levels_today") or "", item.id)


# --- a call ---------------------------------------------------------------------------------------


def _call_row(
    context: template.Context,
    item: CallView,
    shown: Mapping[str, Any],
    *,
    with_conversation: bool,
    column: bool,
) -> str:
    cells = [
        f"<td>{_failed_as(item.cause.name) if item.cause else formats.standing(item.health)}</td>",
        _call_name(item, with_conversation=with_conversation),
    ]
    if column:
        cells.append(f'<td class="talk">{_talk(item)}</td>')
    if shown.get("prompt"):
        cells.append(f"<td>{formats.fill(item.health)}</td>")
    if shown.get("output"):
        output = formats.number(item.usage.completion_tokens)
        cells.append(f'<td class="num wide">{output}</td>')
    if shown.get("ended"):
        cells.append(f"<td>{_ENDED}{_ended(item)}{_trimmed(item)}</td>")
    cells.append(added_cells(context, shown["added"], item))
    if shown.get("started"):
        taken = item.latency_ms
        took = (
            "" if taken is None else f'<span class="sub wide">latency {words.seconds(taken)}</span>'
        )
        cells.append(f'<td class="num">{formats.when(context, item.started_at)}{took}</td>')
    return f"<tr>{''.join(cells)}</tr>"


@cache
def _failed_as(cause: FailureCause) -> str:
    said = escape(words.cause_sentence(cause))
    return (
        f'<span class="level is-critical">{formats.sign(Level.CRITICAL)}Failed</span>'
        f'<span class="sub why is-critical">{said}</span>'
    )


def _call_name(item: CallView, *, with_conversation: bool) -> str:
    told: list[str] = [_own_way(item.model)]
    told += ["side call"] if item.lane == "side" else []
    told += ["asked for again"] if item.is_asked_again else []
    told += [_own_way(item.purpose)] if item.purpose != "chat" else []
    told += [_own_way(item.pack)] if item.pack else []
    told += [_client(item.client)] if item.client else []
    talk = ""
    if with_conversation and item.conversation:
        name = escape(item.conversation)
        link = f'<a href="{address_of("conversation", item.conversation)}">{name}</a>'
        talk = f'<span class="talk-inline"> · {link}</span>'
    return (
        f'<th scope="row">{row_link("call", item.id, prefix="k-")}'
        f'<span class="sub" title="{escape(item.model)}">{" · ".join(told)}{talk}</span></th>'
    )


def _talk(item: CallView) -> str:
    if not item.conversation:
        return formats.dash("of no conversation")
    name = escape(item.conversation)
    number = "" if item.generation is None else sub(f"generation {item.generation:,}")
    address = address_of("conversation", item.conversation)
    return f'<a class="id" href="{address}" title="{name}">{name}</a>{number}'


# A card has no head of a column to say what the word is.
_ENDED = '<span class="only-narrow small soft">ended </span>'


def _ended(item: CallView) -> str:
    if item.cause:
        said = f'<span class="cause">{escape(item.cause.name)}</span>'
        if item.finish_reason:
            return said + sub(f"finish: {escape(item.finish_reason)}")
        return said + (sub(f"HTTP {item.http_status}") if item.http_status else "")
    if item.finish_reason:
        return escape(item.finish_reason)
    if item.status != "success":
        return escape(item.status)
    return formats.dash("finish reason not reported")


def _trimmed(item: CallView) -> str:
    trim = item.trim
    if trim is None or trim.after_bytes >= trim.before_bytes:
        return ""
    sizes = f"{trim.before_bytes:,} to {trim.after_bytes:,} bytes"
    return f' <span class="tag" title="{sizes}">trimmed</span>'


# --- a conversation -------------------------------------------------------------------------------


def _known_level(item: ConversationView) -> str:
    if item.health.level is not Level.UNKNOWN or not item.known_level:
        return ""
    return sub(f"was {escape(item.known_level)}")


def _conversation_name(item: ConversationView, caption: str, *, why: bool) -> str:
    client = f" · {_client(item.client)}" if item.client else ""
    prefix = f"c-{slugify(caption)}-"
    return (
        f'<th scope="row">{row_link("conversation", item.id, prefix=prefix)}'
        f'<span class="sub" title="{escape(item.model)}">{_own_way(item.model)}{client}</span>'
        f"{_why(item) if why else ''}</th>"
    )


def _why(item: ConversationView) -> str:
    if item.attention:
        return reasons(item.attention)
    said = words.verdict(item.health)
    return f'<span class="sub why is-{item.health.level}">{escape(said)}</span>' if said else ""


def _failed(item: ConversationView) -> str:
    if not item.failures:
        return "0"
    asked = f"{reverse('calls')}?conversation={quote(item.id, safe='')}&amp;cause=any"
    return f'<a class="cause" href="{asked}">{item.failures:,}</a>'


@register.simple_tag
def reasons(found: Iterable[Any]) -> SafeString:
    """Why somebody should look, each with the color of its weight."""
    return markup(
        "".join(
            f'<span class="sub why is-{words.weight(each)}">{escape(words.why_look(each))}</span>'
            for each in found
        )
    )


def _client(client: Any) -> str:
    said = f"{escape(client.name)} {escape(client.version)}"
    return f'<span title="{said}">{_own_way(client.name)}</span>'


def _own_way(name: str) -> str:
    """A name beside others: one that is read from right to left would turn their order around."""
    return str(escape(name)) if name.isascii() else f"<bdi>{escape(name)}</bdi>"
