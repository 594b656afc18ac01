"""Values as plain words: shares, ages, verdicts. Nothing here is markup.

Unknown is never 0 and no percentage is made up (ADR 7).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from math import floor
from typing import assert_never

from helmdash.core.budgets.health import Health, HealthReason
from helmdash.core.budgets.learned_windows import OUTSIDE, ClaimState, LimitSource, WindowClaim
from helmdash.core.budgets.levels import Level, line_of
from helmdash.core.calls.failures import Advice, FailureCause
from helmdash.core.conversations.attention import Attention, AttentionReason
from helmdash.core.evidence.cache_misses import LEAST_CACHED_TOKENS, MissCause
from helmdash.core.evidence.net_value import CACHE_SECONDS
from helmdash.queries.failures import FailureGroup

DASH = "\N{EN DASH}"

_SOURCES = {
    LimitSource.CONTEXT_LENGTH: "context length",
    LimitSource.INPUT_LENGTH: "input length",
    LimitSource.BUDGET: "input budget",
    LimitSource.REFUSAL: "window named by a refusal",
    LimitSource.SERVER: "window reported by the server",
    LimitSource.PUBLISHED: "window that its vendor publishes",
    LimitSource.CLIENT: "window the client counts on",
}
_STATES = {
    ClaimState.USED: "counts",
    ClaimState.OUTRANKED: "a source that comes first names one",
    ClaimState.DISPROVED: "disproved: a longer prompt was answered",
    ClaimState.USED_ALTHOUGH_DISPROVED: "counts, for it is yours, although a longer prompt was "
    "answered",
}
_REASONS = {
    HealthReason.USAGE_UNAVAILABLE: "usage not reported",
    # Also where one was named, and a larger prompt was answered.
    HealthReason.MODEL_LIMIT_UNAVAILABLE: "limit unknown: no budget or model names one that holds",
    HealthReason.SUSPECTED_CUT: "probably cut upstream",
    HealthReason.NO_MAIN_CALL: "only side calls so far",
}
_ADVICE = {
    Advice.RETRY: "send it again",
    Advice.RETRY_LATER: "wait, then send it again",
    Advice.RAISE_OUTPUT: "allow more output tokens",
    Advice.SHORTEN_PROMPT: "send a shorter prompt",
    Advice.SINGLE_PICK: "ask for the next step only",
    Advice.WITHOUT_JSON_MODE: "ask without the provider's JSON mode",
    Advice.OTHER_MODEL: "use another model",
    Advice.FIX_CREDENTIALS: "check the provider's key",
    Advice.SURFACE: "show it to a person; sending it again will not help",
}
_MISSES = {
    MissCause.MODEL_CHANGED: "another model or provider answered",
    MissCause.FRESH_START: "a clear or a compaction began the prompt anew",
    MissCause.TOOLS_CHANGED: "the tools changed, which stand before everything else",
    MissCause.SYSTEM_CHANGED: "the system prompt changed",
    MissCause.MESSAGES_CHANGED: "an earlier message changed or went",
    MissCause.OVERLAPPED: "that call was still being answered",
    MissCause.TOO_SHORT: f"providers keep nothing below {LEAST_CACHED_TOKENS:,} tokens",
    MissCause.NOTHING_HELD: "that call left nothing in a cache; its client may not ask for one",
    MissCause.MAY_HAVE_EXPIRED: "it may have expired, for providers forget after "
    f"{CACHE_SECONDS // 60} minutes",
    MissCause.UNKNOWN: "why is not known",
}
_SHORT_MISSES = {
    MissCause.MODEL_CHANGED: "another model",
    MissCause.FRESH_START: "fresh start",
    MissCause.TOOLS_CHANGED: "tools changed",
    MissCause.SYSTEM_CHANGED: "system prompt changed",
    MissCause.MESSAGES_CHANGED: "messages changed",
    MissCause.OVERLAPPED: "side by side",
    MissCause.TOO_SHORT: "too short to cache",
    MissCause.NOTHING_HELD: "nothing was held",
    MissCause.MAY_HAVE_EXPIRED: "maybe expired",
    MissCause.UNKNOWN: "missed",
}
_CAUSES = {
    FailureCause.SAFETY_FILTERED: "A content filter held it back",
    FailureCause.REFUSED: "The model declined to answer",
    FailureCause.LENGTH_TRUNCATED: "The output limit cut the reply",
    FailureCause.REASONING_EXHAUSTED: "Reasoning used up the output limit",
    FailureCause.CONTEXT_OVERFLOW: "The prompt was too long",
    FailureCause.CONSTRAINED_DEADLOCK: "The JSON it wrote is broken",
    FailureCause.UNDECODABLE: "The reply is not the JSON that was asked for",
    FailureCause.LIKELY_TIMEOUT: "An empty reply without an end: probably a timeout",
    FailureCause.EMPTY_COMPLETION: "The reply was empty",
    FailureCause.EMPTY_PLAN: "The plan has no step that can be used",
    FailureCause.TIMED_OUT: "It took too long",
    FailureCause.RATE_LIMITED: "The provider's rate limit was reached",
    FailureCause.AUTH_FAILED: "The provider did not accept the key",
    FailureCause.UNREACHABLE: "The provider could not be reached",
    FailureCause.UPSTREAM_ERROR: "The provider failed",
    FailureCause.UPSTREAM_ERROR_IN_200: "The reply was an error",
    FailureCause.BAD_REQUEST: "The request was refused",
    FailureCause.CLIENT_DISCONNECTED: "The client left before the end",
}
# An outcome of a plan or of a call: its sign and color are those of a level.
_OUTCOMES = {
    "running": (Level.UNKNOWN, "Running"),
    "ok": (Level.HEALTHY, "Ok"),
    "gap": (Level.CAUTION, "Gap"),
    "partial": (Level.CAUTION, "Partial"),
    "failed": (Level.CRITICAL, "Failed"),
    "clean": (Level.HEALTHY, "Clean"),
    "truncated": (Level.CAUTION, "Truncated"),
    "empty": (Level.CRITICAL, "Empty"),
    "undecodable": (Level.CRITICAL, "Undecodable"),
}
_VARIANTS = {
    "full_steps": "all steps at once",
    "single_pick": "the next step only",
}
_PURPOSES = {
    "filter": "picks entries of the catalog",
    "plan": "makes the plan",
    "route": "chooses one entry",
}
# From here on, rounding would say 100 %; and below it, one place after the point is shown.
_NEARLY_ALL, _ONE_PLACE_BELOW = 99.5, 10
# Upper end in seconds, length of the unit in seconds, its sign.
_AGES = ((60, 1, "s"), (3600, 60, "min"), (86_400, 3600, "h"))
_HOUR_S, _DAY_MIN = 3600, 24 * 60
_SECOND_MS, _MINUTE_MS = 1000, 59_950  # from 59.95 s on, one place after the point is 60.0
# Clocks of clients may run ahead of ours by so much before we say so.
_SKEW_SECONDS = 5


def percent(share: float | None) -> str:
    """A fill level (1 is full) as text; never rounded up to a line it has not reached. None: a
    dash."""
    if share is None:
        return DASH
    value = share * 100
    if 0 < value < 0.1:
        return "< 0.1 %"
    if value < 10:
        return f"{int(value * 10) / 10:g} %"
    return f"{int(value):,} %"


def rounded(share: float | None) -> str:
    """A rate from 0 to 1, or an end of its interval: half up, but 0 % and 100 % only where it is
    that. None: a dash."""
    if share is None:
        return DASH
    # 0.285 times 100 is a hair below 28.5: nine places are more than any count can tell.
    value = round(share * 100, 9)
    if 0 < value < 0.1:
        return "< 0.1 %"
    if _NEARLY_ALL <= value < 100:
        return "> 99 %"
    if value < _ONE_PLACE_BELOW:
        return f"{floor(value * 10 + 0.5) / 10:g} %"
    return f"{floor(value + 0.5):,} %"


def ago(at: datetime, now: datetime) -> str:
    """A distance in the largest unit that fits."""
    seconds = int((now - at).total_seconds())
    if seconds < -_SKEW_SECONDS:
        return "in " + _span(-seconds)
    return "just now" if seconds < _SKEW_SECONDS else _span(seconds) + " ago"


def reason(health: Health) -> str:
    """Why a level is unknown; empty when it is known."""
    return _REASONS[health.reason] if health.reason else ""


def denominator(health: Health) -> str:
    """The name of what a prompt is measured against."""
    return _SOURCES[health.limit_source] if health.limit_source else "limit"


def claimant(claim: WindowClaim) -> str:
    """Who says how large a window is."""
    if claim.is_operators:
        return f"your budget ({_SOURCES[claim.source]})"
    if claim.source in OUTSIDE:
        return _SOURCES[claim.source]
    return f"the row that HelmDash ships ({_SOURCES[claim.source]})"


def outcome_of_claim(claim: WindowClaim) -> str:
    """What became of somebody's word on a window."""
    return _STATES[claim.state]


def verdict(health: Health) -> str:
    """Why a conversation stands where it stands, with the line it passed; empty when healthy."""
    line = line_of(health.level, health)
    if not line:
        return reason(health)
    over = (health.prompt_tokens or 0) - line
    return f"{over:,} over its {health.level.value} line of {line:,}"


def why_look(attention: Attention) -> str:
    """A reason to look in words; a cause with what it means."""
    _, _, cause = attention.detail.partition("failed: ")
    if attention.reason is not AttentionReason.NEWEST_FAILED or cause not in _CAUSES:
        return attention.detail
    said = cause_sentence(FailureCause(cause))
    return f"{attention.detail} ({said[0].lower()}{said[1:]})"


def weight(attention: Attention) -> Level:
    """The level whose color and sign a reason to look has: critical where something is lost."""
    match attention.reason:
        case (
            AttentionReason.CLIENT_REFUSAL
            | AttentionReason.CRITICAL
            | AttentionReason.OFTEN_FAILED
            | AttentionReason.NEWEST_FAILED
            | AttentionReason.WAS_CRITICAL
        ):
            return Level.CRITICAL
        case AttentionReason.SUSPECTED_CUT | AttentionReason.CAUTION | AttentionReason.WAS_CAUTION:
            return Level.CAUTION
        case _:
            assert_never(attention.reason)


def cause_sentence(cause: FailureCause) -> str:
    """What happened, in a few plain words."""
    return _CAUSES[cause]


def trend(group: FailureGroup) -> str:
    """How many calls of a group there were in the range before, beside those of this one; "" where
    that is not known."""
    if group.before is None:
        return ""
    if not group.before:
        return "none in the previous range"
    if group.calls == group.before:
        return "as in the previous range"
    direction = "up" if group.calls > group.before else "down"
    return f"{direction} from {group.before:,} in the previous range"


def miss_sentence(value: MissCause) -> str:
    """Why a cache did not have the beginning of a prompt, as a clause to follow a colon."""
    return _MISSES[value]


def miss_word(value: MissCause) -> str:
    """The same for a cell of a table."""
    return _SHORT_MISSES[value]


def advice(value: Advice) -> str:
    """What to do about a cause, as a clause to follow "Advice:"."""
    return _ADVICE[value]


def outcome(value: str) -> tuple[Level, str]:
    """An outcome's word, and the level whose sign and color it has."""
    return _OUTCOMES.get(value, (Level.UNKNOWN, value or DASH))


def variant_task(value: str | None) -> str:
    """What a prompt variant asks of the model; "" for None, and for one that nobody knows."""
    return _VARIANTS.get(value or "", "")


def ends(text: str, chars: int) -> str:
    """A text with its middle left out: what is asked for stands before or after a paste."""
    plain = " ".join(text.split())
    if len(plain) <= chars:
        return plain
    tail = chars * 3 // 5  # it follows the paste more often than not
    head = chars - tail - 3
    # At the ends of words, unless there is but one.
    before = plain[: head + 1].rpartition(" ")[0] or plain[:head]
    after = plain[-tail - 1 :].partition(" ")[2] or plain[-tail:]
    return f"{before} … {after}"


def purpose_task(value: str) -> str:
    """What a call of a planning story was for."""
    return _PURPOSES.get(value, "")


def seconds(ms: float | None) -> str:
    """Milliseconds as people read them: 840 ms, 28.9 s, 2 min 3 s, 4 h 10 min; None: a dash."""
    if ms is None:
        return DASH
    if ms < _SECOND_MS:
        return f"{round(ms):,} ms"
    if ms < _MINUTE_MS:
        return f"{ms / _SECOND_MS:.1f} s"
    whole = round(ms / _SECOND_MS)
    if whole < _HOUR_S:
        return f"{whole // 60} min {whole % 60} s"
    minutes = round(whole / 60)
    if minutes < _DAY_MIN:
        return f"{minutes // 60} h {minutes % 60} min"
    hours = round(minutes / 60)
    return f"{hours // 24:,} d {hours % 24} h"


def dollars(amount: float) -> str:
    """USD: in cents, and what is less than one in two places that say something."""
    if 0 < amount < 0.01:
        return f"{amount:.2g}" if amount >= 0.0001 else "< 0.0001"
    return f"{amount:,.2f}"


def removed_share(before: int, after: int) -> str:
    """The share of bytes that went."""
    return rounded((before - after) / before if before > 0 else None)


def pretty(value: object) -> str:
    """JSON with two spaces a level, Unicode as it is."""
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)


def message_text(message: object) -> str:
    """A message for reading: its text, or the whole of it where it is more than text."""
    if isinstance(message, Mapping) and set(message) <= {"role", "content", "name"}:
        content = message.get("content")
        if isinstance(content, str):
            return content
    return pretty(message)


def why_missing(exception: object) -> str:
    """What a 404 says: the sentence of ours that raised it, else a general one."""
    text = str(exception or "")
    is_ours = bool(text) and not text.startswith(("{", "Resolver404"))
    return text if is_ours else "No page has this address."


def span(length: timedelta) -> str:
    """A length of time in the largest unit that fits."""
    return _span(max(int(length.total_seconds()), 0))


def _span(seconds: int) -> str:
    for end, length, unit in _AGES:
        if seconds < end:
            return f"{seconds // length} {unit}"
    return f"{seconds // 86_400} d"


def field_name(name: str) -> str:
    """A field of a form as people call it: `soft_text` is "Soft text"."""
    return _FIELD_NAMES.get(name) or name.replace("_", " ").capitalize()


# As the labels of the forms have them, where the machine's name says something else.
_FIELD_NAMES = {
    "content": "What must survive",
    "reminder_content": "Add this to the package",
    "remediation": "Care in the gateway",
}


def signed(change: int) -> str:
    """A change with its sign: +1,200, or 0."""
    return f"{change:+,}".replace("-", "\u2212") if change else "0"
