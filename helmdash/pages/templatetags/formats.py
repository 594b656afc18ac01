"""How values are written on a page: numbers with unit and denominator, unknown as a dash."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, lru_cache

from django import template
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import slugify

from helmdash.core.budgets.health import Health, HealthReason
from helmdash.core.budgets.levels import LEVELS, Glyph, Level, LevelRow
from helmdash.core.conversations.attention import FAILING
from helmdash.core.text.counts import count_of
from helmdash.core.text.tokens import compact_json
from helmdash.pages.parts import words
from helmdash.pages.parts.attempts import tries
from helmdash.pages.parts.care import countdown
from helmdash.pages.parts.charts import composition, drawings
from helmdash.pages.parts.receipts import flags, waterfall
from helmdash.queries.conversations.care import NeedsAttention
from helmdash.queries.conversations.conversations import ConversationView
from helmdash.queries.ledger import ProcessLedger
from helmdash.queries.models import Rate

register = template.Library()

for plain in (
    composition.by_kind,
    words.advice,
    words.cause_sentence,
    words.claimant,
    count_of,
    words.denominator,
    words.dollars,
    words.ends,
    words.message_text,
    words.miss_sentence,
    words.miss_word,
    words.outcome_of_claim,
    words.percent,
    words.pretty,
    words.purpose_task,
    words.reason,
    words.removed_share,
    words.rounded,
    words.seconds,
    words.span,
    words.trend,
    words.variant_task,
    words.verdict,
    words.weight,
    words.why_look,
    words.why_missing,
):
    register.filter(plain)
register.filter("compact", compact_json)
register.filter("countdown", countdown)
register.filter("flags", flags)
register.filter("slug", slugify)
register.filter("tries", tries)
register.filter("waterfall", waterfall)

# A table of fifty rows writes the same few words and dashes again and again.
_KEPT = 128

# A process is called HOST-PID-START; the start has a column of its own.
_START_IN_NAME = re.compile(r"-\d{8}T\d{6,}$")


@register.simple_tag
@cache
def level(value: Level | str) -> SafeString:
    """A level as word, shape and colour together."""
    row = LEVELS[Level(value)]
    return format_html(
        '<span class="level {}">{}{}</span>', row.css_class, sign(row.level), row.word
    )


@register.simple_tag
def levels() -> tuple[LevelRow, ...]:
    """Every level with its word and meaning, for legends."""
    return tuple(LEVELS.values())


@register.simple_tag
@lru_cache(_KEPT)
def outcome(value: str) -> SafeString:
    """What became of a plan or a call: word, shape and color together."""
    as_level, word = words.outcome(value)
    return format_html(
        '<span class="level {}">{}{}</span>', LEVELS[as_level].css_class, sign(as_level), word
    )


# The shape, the colour of the level that it is nearest to, and the radius (px).
_STRENGTHS = {
    "soft": (Glyph.DISC, "is-caution", 3.4),
    "hard": (Glyph.TRIANGLE, "is-caution", 4.6),
    "critical": (Glyph.DIAMOND, "is-critical", 4.6),
}


@register.simple_tag
def strength(value: str) -> SafeString:
    """How firmly guidance asks, or that it was a clear: word, shape and colour together."""
    if value not in _STRENGTHS:
        return format_html(
            '<span class="level"><svg viewBox="-7 -7 14 14" aria-hidden="true">'
            '<path class="flag" d="M-1.5,-6 h3 v6 h3.5 l-5,6 l-5,-6 h3.5 z"/></svg>{}</span>',
            value.title(),
        )
    glyph, color, radius = _STRENGTHS[value]
    return format_html(
        '<span class="level {}"><svg viewBox="-7 -7 14 14" aria-hidden="true">'
        '<path class="{}" d="{}"/></svg>{}</span>',
        color,
        color,
        drawings.outline(glyph, 0, 0, radius),
        value.title(),
    )


@register.simple_tag
def standing(health: Health) -> SafeString:
    """A level; where the count it would rest on is not trusted, also why."""
    shown = level(health.level)
    if health.reason is not HealthReason.SUSPECTED_CUT:
        return shown
    return format_html('{}<span class="sub">{}</span>', shown, words.reason(health))


@register.simple_tag
def light(item: ConversationView | NeedsAttention) -> SafeString:
    """What a conversation's row says first: that it fails, unless its level is as bad; then the
    level. A green word in front of calls that fail would hide them.
    """
    if item.health.level is Level.CRITICAL or not any(
        each.reason in FAILING for each in item.attention
    ):
        return standing(item.health)
    return format_html(
        '<span class="level {}">{}Failing</span><span class="sub">prompt {}</span>',
        LEVELS[Level.CRITICAL].css_class,
        sign(Level.CRITICAL),
        LEVELS[item.health.level].word.lower(),
    )


@register.simple_tag
def today(levels: Mapping[str, Level] | str, name: str) -> SafeString:
    """What a conversation's level is by today's budget, where that is another; levels: "" where
    nothing is told of any."""
    level = levels.get(name) if isinstance(levels, Mapping) else None
    if level is None:
        return SafeString("")
    row = LEVELS[level]
    return format_html(
        '<span class="sub"><span class="level {}">{}{}</span> by today&#x27;s budget</span>',
        row.css_class,
        sign(level),
        row.word,
    )


@register.simple_tag
@cache
def sign(value: Level | str) -> SafeString:
    """Only the shape of a level, beside its word."""
    row = LEVELS[Level(value)]
    is_ring = row.glyph is Glyph.RING
    dashes = ' stroke-width="2" stroke-dasharray="3 1.8"'
    return format_html(
        '<svg viewBox="-7 -7 14 14" aria-hidden="true"><path class="{}" d="{}"{}/></svg>',
        "ring" if is_ring else row.css_class,
        drawings.outline(row.glyph, 0, 0, 4.6),
        mark_safe(dashes) if is_ring else "",  # noqa: S308  (the constant above)
    )


@register.simple_tag
def number(value: int | None, why: str = "not reported") -> SafeString:
    """A whole number, or for None a dash that says why there is none."""
    return dash(why) if value is None else _plain("{:,}", value)


@register.simple_tag
@lru_cache(_KEPT)
def dash(why: str = "not reported") -> SafeString:
    """A grey dash; its reason is read aloud and shown on hover."""
    return format_html(
        '<span class="none" title="{}"><span aria-hidden="true">{}</span>'
        '<span class="sr">{}</span></span>',
        why,
        words.DASH,
        why,
    )


@register.simple_tag
def told(value: object, why: str = "not reported") -> SafeString:
    """A value in a list of facts; where there is none, a dash with its reason in plain sight."""
    if value is None or value == "":
        markup = '<span class="none">{} <span class="small">{}</span></span>'
        return format_html(markup, words.DASH, why)
    if isinstance(value, bool):
        return format_html("{}", "yes" if value else "no")
    return format_html("{}", thousands(value) if isinstance(value, int) else value)


@register.simple_tag
def told_time(ms: int | None, why: str = "not reported") -> SafeString:
    """Milliseconds in a list of facts, as `taken` has them; where there are none, a dash with its
    reason."""
    return told(None, why) if ms is None else taken(ms)


@register.simple_tag
def taken(ms: int | str | None, why: str = "not reported") -> SafeString:
    """Milliseconds in a table as people read them, and to the millisecond when pointed at; what was
    reported as a text stays as it is."""
    if not isinstance(ms, int):
        return told_short(ms, why)
    return format_html('<span title="{} ms">{}</span>', thousands(ms), words.seconds(ms))


@register.simple_tag
def told_short(value: int | str | None, why: str = "not reported") -> SafeString:
    """A value in a table: a number with its thousands apart, a text as it is, or for None a
    dash."""
    if isinstance(value, str):
        return format_html("{}", value)
    return number(value, why)


@register.filter
def short_process(name: str) -> str:
    """A process's name without the moment it started."""
    return _START_IN_NAME.sub("", name)


@register.filter
def is_forced(process: ProcessLedger) -> bool:
    """Whether it crashed: the process that came after it closed its row."""
    return process.stopped_at is not None and process.stopped_at > process.seen_at


@lru_cache(_KEPT)
def _unknown_fill(why: str) -> SafeString:
    """A dash, and beside it its reason where nobody can point at it: on a phone."""
    return format_html(
        '<span class="fill">{}<span class="sub only-narrow" aria-hidden="true">{}</span></span>',
        dash(why),
        why,
    )


@register.simple_tag
def fill(health: Health) -> SafeString:
    """How full: percent and tokens, with the name of what they are measured against."""
    prompt, limit = health.prompt_tokens, health.limit_tokens
    if prompt is None:
        return _unknown_fill(words.reason(health) or "usage not reported")
    if health.reason is HealthReason.SUSPECTED_CUT:
        # A share of the limit would be a share of a count that is not trusted.
        return _plain(
            '<span class="fill"><span><b>{:,}</b> token{} reported</span>'
            '<span class="sub">not trusted</span></span>',
            prompt,
            "" if prompt == 1 else "s",
        )
    if limit is None or health.hard_util is None:
        return _plain(
            '<span class="fill"><span><b>{:,}</b> token{}</span>'
            '<span class="sub">limit unknown</span></span>',
            prompt,
            "" if prompt == 1 else "s",
        )
    return _plain(
        '<span class="fill"><span><b>{}</b> · {:,} / {:,} tokens</span>{}'
        '<span class="sub">of {}</span></span>',
        escape(words.percent(health.hard_util)),
        prompt,
        limit,
        _bar(health, limit),
        escape(words.denominator(health)),
    )


@register.simple_tag
def before_after(before: int, after: int) -> SafeString:
    """Two bars on one scale: the bytes there were, and those that were left."""
    scale = max(before, after, 1)
    return _plain(
        '<svg class="bar" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="bar-before" width="{:.1f}" height="6"/>'
        '<rect class="bar-after" width="{:.1f}" height="6"/></svg>',
        100 * before / scale,
        100 * after / scale,
    )


@register.simple_tag
def rate(value: Rate) -> SafeString:
    """A share with how many of how many; nothing but a dash where none was counted."""
    if value.share is None:
        return dash("no call was counted")
    return _plain(
        '<span{}>{}<span class="sub">{:,} of {:,}</span></span>',
        "" if value.count else ' class="none"',
        escape(words.rounded(value.share)),
        value.count,
        value.n,
    )


@register.simple_tag
def interval(value: Rate) -> SafeString:
    """A share with its numbers, and how far it can be trusted: as a bar and in words."""
    if value.share is None or value.low is None or value.high is None:
        return dash("no call was counted")
    low, high = 100 * value.low, 100 * value.high
    return _plain(
        '<span class="fill"><span><b>{}</b> · {:,} of {:,}</span>'
        '<svg class="bar" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="bar-track" width="100" height="6"/>'
        '<rect class="bar-range" x="{:.1f}" width="{:.1f}" height="6"/>'
        '<rect class="bar-mark" x="{:.1f}" width="1.6" height="6"/></svg>'
        '<span class="sub">{} to {}</span></span>',
        escape(words.rounded(value.share)),
        value.count,
        value.n,
        low,
        max(high - low, 0.8),
        min(100 * value.share, 98.4),
        escape(words.rounded(value.low)),
        escape(words.rounded(value.high)),
    )


@register.simple_tag(takes_context=True)
def when(context: template.Context, at: datetime | None, why: str = "never") -> SafeString:
    """How long ago, with the exact moment in the reader's zone behind it; for None a dash that says
    why."""
    if at is None:
        return dash(why)
    moment = at.astimezone(UTC)
    return _plain(
        '<time datetime="{}" title="{}">{}</time>',
        moment.isoformat(timespec="seconds"),
        escape(moment.astimezone(context.get("zone", UTC)).strftime("%Y-%m-%d %H:%M:%S %Z")),
        words.ago(moment, context["now"]),
    )


@register.simple_tag
def compared(value: object, *, is_time: bool = False) -> SafeString | str:
    """One side of a comparison: a number with its thousands apart, milliseconds as people read
    them, a word, a dash for what is not known."""
    if value is None:
        return dash("not known")
    if is_time and isinstance(value, int):
        return taken(value)
    return thousands(value) if isinstance(value, int) else breakable(str(value))


@register.filter
def thousands(value: int) -> str:
    """A whole number with its thousands apart."""
    return f"{value:,}"


@register.filter
def breakable(label: str) -> SafeString:
    """A name of several parts, which a narrow column breaks between them."""
    text: str = escape(label)
    for between in "./_":
        text = text.replace(between, f"{between}<wbr>")
    return mark_safe(text)  # noqa: S308  (escaped above)


@register.filter
def signed(value: int) -> str:
    """A change, with its sign."""
    return words.signed(value)


@register.filter
def share_of(part: int, whole: int) -> str:
    """As `rounded` has it; the whole must not be zero."""
    return words.rounded(part / whole)


@register.filter
def said_of(words: Mapping[str, str] | str, name: str) -> str:
    """What is told of a name; "" for nothing, and where nothing is told of any."""
    return words.get(name, "") if isinstance(words, Mapping) else ""


@register.filter
def items_of(found: Mapping[str, Sequence[object]] | str, name: str) -> Sequence[object]:
    """What is listed under a name; nothing where nothing is listed at all."""
    return found.get(name, ()) if isinstance(found, Mapping) else ()


@register.filter
def plus(value: float, other: float) -> float:
    """A place a little beside another, in a drawing."""
    return round(value + other, 1)


def _bar(health: Health, limit: int) -> SafeString:
    width = min(health.hard_util or 0.0, 1.0) * 100
    lines = (health.optimal_max_tokens, health.critical_max_tokens)
    marks = "".join(
        f'<rect class="bar-mark" x="{100 * at / limit - 0.3:.1f}" width="0.6" height="6"/>'
        for at in lines
        if at is not None and at < limit
    )
    return _plain(
        '<svg class="bar" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="bar-track" width="100" height="6"/>'
        '<rect class="{}" width="{:.1f}" height="6"/>{}</svg>',
        LEVELS[health.level].css_class,
        width,
        marks,
    )


def _plain(markup: str, *values: object) -> SafeString:
    """Markup with numbers, names of ours and what is escaped already, which format_html would look
    through again: four times as slow, and a page has hundreds."""
    return mark_safe(markup.format(*values))  # noqa: S308  (as the values are, see above)
