"""A suggestion as the budgets page shows it: names for people, and the way to its calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from django.urls import reverse

from helmdash.core.budgets.budgets import STORED_FIELDS
from helmdash.core.budgets.trials import Arm
from helmdash.core.evidence.figures import Figure
from helmdash.core.evidence.suggested import SuggestionState, Value, after_edit, before_edit
from helmdash.core.evidence.trialling import TrialState
from helmdash.core.text.query_terms import term_text
from helmdash.core.text.time_ranges import TimeRange
from helmdash.queries.evidence.limits import LearnedLimit, LearnedLimits
from helmdash.queries.evidence.limits_after import LimitAfter
from helmdash.queries.evidence.suggestions import SuggestionView
from helmdash.queries.evidence.trials import TrialArm, TrialView

_NAMES = {each.name: each.label for each in STORED_FIELDS}
# Of figures whose column says little by itself.
_OWN_NAMES = {"context_length": "window", "prompt_variant": "prompt variant"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownChange:
    """One column: its name and unit, today's value and the suggested one, as texts."""

    name: str
    unit: str
    today: str
    suggested: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownArm:
    """One arm of a trial: its name, and the addresses of its conversations, its calls and the clean
    ones. rate, sure: percent."""

    told: TrialArm
    name: str
    rate: str
    sure: str
    conversations: str
    calls: str
    clean: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownTrial:
    """A trial: how it stands and what it has shown, each as a sentence. arms: empty until its calls
    were counted."""

    told: TrialView
    share: str
    standing: str
    shown: str
    arms: tuple[ShownArm, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSuggestion:
    """A suggestion; calls: the address of the calls it was learned from, concerned: of those that
    the edit is about, concerned_clean: of the clean ones among them, None where none are told.
    limit: the model's once it is accepted; None: it stays as it is, or is the figure itself.
    before, after: of those that its effect is told by, and of the clean ones; "" where it is not
    decided. why: the
    sentence in pieces, each with the address of the calls that it counts, "" for plain text."""

    told: SuggestionView
    why: tuple[tuple[str, str], ...]
    changes: tuple[ShownChange, ...]
    calls: str
    concerned: str | None
    concerned_clean: str | None
    limit: LimitAfter | None = None
    trial: ShownTrial | None = None
    before: str = ""
    before_clean: str = ""
    after: str = ""
    after_clean: str = ""


def shown(found: SuggestionView, limit: LimitAfter | None = None) -> ShownSuggestion:
    """The suggestion with what the page adds. limit: another one than today's, once it is
    accepted."""
    touched = found.touched_query
    return ShownSuggestion(
        told=found,
        why=tuple(_pieces(found)),
        changes=tuple(
            ShownChange(
                name=_name(each.field),
                unit=_unit(each.field),
                today=_text(each.today),
                suggested=_text(each.suggested),
            )
            for each in found.changes
        ),
        calls=_calls(found, found.query or term_text("key", found.model_key)),
        concerned=_calls(found, touched) if touched else None,
        concerned_clean=_calls(found, f"{touched} outcome:clean") if touched else None,
        limit=limit,
        trial=_shown_trial(found.trial, found.state) if found.trial else None,
        before=_beside(found, before_edit),
        before_clean=_beside(found, before_edit, "outcome:clean"),
        after=_beside(found, after_edit),
        after_clean=_beside(found, after_edit, "outcome:clean"),
    )


def _pieces(found: SuggestionView) -> Iterator[tuple[str, str]]:
    rest = found.why
    for number in found.numbers:
        before, text, after = rest.partition(number.text)
        if text:
            yield before, ""
            yield text, _calls(found, number.query)
            rest = after
    yield rest, ""


def _beside(
    found: SuggestionView,
    span_of: Callable[[datetime], tuple[datetime, datetime | None]],
    only: str = "",
) -> str:
    """The address of the model's calls of a span beside the decision; "" where there is none."""
    if found.decided_at is None:
        return ""
    since, until = span_of(found.decided_at)
    span = TimeRange(since=since, until=until).exact
    query = {"query": f"{term_text('key', found.model_key)} {only}".strip(), "range": span}
    return f"{reverse('calls')}?{urlencode(query)}"


# What a trial's state means for who decides.
_STANDINGS = {
    TrialState.RUNNING: "On trial",
    TrialState.FINISHED: "The trial is over",
    TrialState.STOPPED: "Stopped as clearly worse",
    TrialState.DECIDED: "The trial ended with the decision",
}
_ARM_NAMES = {Arm.TODAY: "Today's", Arm.SUGGESTED: "Suggested"}


_EDITED = (
    "The trial ended, for somebody edited the figure: dismiss this one, and what calls show is "
    "suggested anew"
)


def _shown_trial(found: TrialView, of_suggestion: SuggestionState) -> ShownTrial:
    arms = [each for each in (found.today, found.suggested) if each is not None]
    # Ended without a decision about the suggestion itself.
    is_edited = found.state is TrialState.DECIDED and of_suggestion is SuggestionState.TRIAL
    return ShownTrial(
        told=found,
        share=f"{found.share:.0%}",
        standing=_EDITED if is_edited else _STANDINGS[found.state],
        shown=_difference(found),
        arms=tuple(
            ShownArm(
                told=each,
                name=_ARM_NAMES[each.arm],
                rate=f"{each.rate:.1%}" if each.rate is not None else "",
                sure=f"{each.low:.1%} to {each.high:.1%}"
                if each.low is not None and each.high is not None
                else "",
                conversations=_of_arm(found, each, page="conversations"),
                calls=_of_arm(found, each),
                clean=_of_arm(found, each, query="outcome:clean"),
            )
            for each in arms
        ),
    )


def _of_arm(found: TrialView, each: TrialArm, page: str = "calls", **more: str) -> str:
    asked = {"trial": f"{found.id}:{each.arm.value}", **more}
    return f"{reverse(page)}?{urlencode(asked)}"


def _difference(found: TrialView) -> str:
    """What the arms differ by, and how sure that is."""
    if found.today is None:
        return "Its calls are counted within a minute."
    apart = found.difference
    if apart is None:
        return "One arm has no calls yet."
    points, low, high = (100 * each for each in (apart.points, apart.low, apart.high))
    said = "more" if points >= 0 else "fewer"
    sure = f"95 % interval {low:+.1f} to {high:+.1f}"
    if low <= 0 <= high:
        sure += ", so none may be the truth"
    return f"{abs(points):.1f} points {said} clean calls with the suggested budget ({sure})."


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownLimit:
    """A learned figure: its name, of which calls it is ("" of all), how sure it is, and the address
    of the calls; "" where there are none, or one, which is named."""

    told: LearnedLimit
    name: str
    of: str
    sure: str
    calls: str


def shown_limits(found: LearnedLimits) -> tuple[ShownLimit, ...]:
    """All that is learned of a model, as the page has it."""
    return tuple(
        ShownLimit(
            told=each,
            name=_name(each.figure.value),
            of=", ".join(filter(None, (each.upstream, each.part.replace("=", " ")))),
            sure=_sure(each),
            calls=_calls(each, each.query) if each.query and each.calls else "",
        )
        for each in found.items
    )


# The words of core.evidence.safe_input, and what the page says for them.
_SURE = {
    "ceiling": "a ceiling",
    "no_fall": "no fall of clean answers",
    "gradual": "falls little by little",
    "not_spread": "a fall, in too few stretches of time",
    "not_lately": "a fall, but not lately",
    "recovers": "a fall, but larger ones fare well",
    "found": "found",
    "not_shown": "not shown",
}


def _sure(each: LearnedLimit) -> str:
    if each.missing:
        return f"{each.missing:,} more calls are needed"
    words = _SURE.get(each.finding, each.finding)
    if each.low is None or each.high is None:
        return words
    if each.figure in (Figure.INPUT_TOKENS, Figure.MAX_CATALOG_BYTES):
        return f"{words}; the fall is {each.low * 100:.0f} to {each.high * 100:.0f} points"
    return f"{words}; {each.low * 100:.0f} to {each.high * 100:.0f} %"


def _calls(found: SuggestionView | LearnedLimit, query: str) -> str:
    """The address of the calls of a query, in the range of what was found."""
    span = TimeRange(since=found.since, until=found.until).exact or "all"
    return f"{reverse('calls')}?{urlencode({'query': query, 'range': span})}"


def _name(field: str) -> str:
    label = _NAMES[field].name
    name = _OWN_NAMES.get(field) or label or field.replace("_", " ")
    return name[:1].upper() + name[1:]


def _unit(field: str) -> str:
    return "tokens" if field == "context_length" else _NAMES[field].unit


def _text(value: Value | None) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)
