"""The filter bars of the pages: text of an address into values, or a sentence with the fix."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any

from django import forms

from helmdash.core.budgets.budgets import PromptVariant
from helmdash.core.budgets.health import HealthReason
from helmdash.core.budgets.levels import Level
from helmdash.core.calls.failures import FailureCause
from helmdash.core.calls.finish import FinishReason
from helmdash.core.calls.lanes import Lane
from helmdash.core.rollups.facts import BAND_LABELS, NO_VARIANT, OTHER, PURPOSES
from helmdash.core.text.query_terms import MOST_CHARS, BadQuery, Field, Query, parse_query
from helmdash.core.text.time_ranges import (
    BadRange,
    TimeRange,
    bound_text,
    parse_moment,
    parse_range,
)
from helmdash.pages.forms import one_of
from helmdash.pages.parts.heat_map import Rows
from helmdash.queries.audit import KINDS, AuditFilters
from helmdash.queries.call_filters import CallFilters
from helmdash.queries.call_terms import ANY_CAUSE, CALL_FIELDS
from helmdash.queries.conversations.conversations import ConversationFilters
from helmdash.queries.trims import TrimFilters, TrimOutcome

PLAN_KINDS = ("plan", "route")
PLAN_OUTCOMES = ("running", "ok", "gap", "partial", "failed")
_WHOLE_ID = "Only plans with exactly this id: a part of it finds nothing"
# What the calls' filter by variant offers.
CALL_VARIANTS = (*PromptVariant, NO_VARIANT)
# What the time control offers by one click, and what it is called.
PRESETS = (("1h", "1 h"), ("24h", "24 h"), ("7d", "7 d"), ("30d", "30 d"), ("all", "All"))


class TimeForm(forms.Form):
    """The time control, the same on every page: `range` as people write it, or `since` and `until`
    as a calendar gives them, which go before it. Cleaned, only `since` and `until` are left.

    default: the range of a page whose address says none.
    """

    default = "all"

    range = forms.CharField(required=False, max_length=80)
    since = forms.CharField(required=False, max_length=40)
    until = forms.CharField(required=False, max_length=40)

    def __init__(self, data: Mapping[str, Any], *, now: datetime, zone: tzinfo = UTC) -> None:
        super().__init__(data)
        self._now = now
        self._zone = zone

    def clean_since(self) -> datetime | None:
        return self._moment("since")

    def clean_until(self) -> datetime | None:
        return self._moment("until")

    def clean(self) -> None:
        typed = self.cleaned_data.pop("range", "")
        since, until = self.cleaned_data.get("since"), self.cleaned_data.get("until")
        if since and until and since >= until:
            self.add_error("until", "must be later than since")
        if self.data.get("since") or self.data.get("until"):
            return
        try:
            found = parse_range(typed or self.default, now=self._now, zone=self._zone)
        except BadRange as error:
            self.add_error("range", str(error))
        else:
            self.cleaned_data |= {"since": found.since, "until": found.until}

    @property
    def presets(self) -> list[tuple[str, str, bool]]:
        """What is offered by one click: its text, its name, and whether it is in force."""
        return [(text, name, text == self.range_text) for text, name in PRESETS]

    @property
    def range_text(self) -> str:
        """The range in force, as its field shows it."""
        since, until = (bound_text(self.data.get(name, "").strip()) for name in ("since", "until"))
        if since or until:
            return f"{since}..{until}" if until else since
        return str(self.data.get("range", "")).strip() or self.default

    @property
    def time_range(self) -> TimeRange:
        """The range in force; only after is_valid()."""
        return TimeRange(since=self.cleaned_data["since"], until=self.cleaned_data["until"])

    @property
    def zone_name(self) -> str:
        """The zone in which times without one are read."""
        return getattr(self._zone, "key", "UTC")

    @property
    def is_narrowed(self) -> bool:
        """Whether any filter is set: an empty list then means that nothing matches."""
        return self.is_any_set(self.fields)

    def is_any_set(self, names: Iterable[str]) -> bool:
        """Whether one of these fields narrows anything; a range of all time does not."""
        return any(self.data.get(name) not in (None, "", "all") for name in names)

    @property
    def problems(self) -> list[tuple[str, str]]:
        """Field and sentence for each thing wrong."""
        return [
            (field, str(message)) for field, messages in self.errors.items() for message in messages
        ]

    def values(self) -> dict[str, Any]:
        """Cleaned values; a field that was left blank is None."""
        return {name: value or None for name, value in self.cleaned_data.items()}

    def _moment(self, name: str) -> datetime | None:
        text = self.cleaned_data[name]
        if not text:
            return None
        try:
            return parse_moment(text, now=self._now, zone=self._zone)
        except ValueError as error:
            raise forms.ValidationError(str(error)) from None


class OverviewForm(TimeForm):
    """What the first page is about: the newest day, unless somebody says otherwise."""

    default = "24h"


class FilterForm(TimeForm):
    """What every list can be narrowed by. Values come from the URL and go back into it."""

    model = forms.CharField(required=False, max_length=255)

    def __init__(self, data: Mapping[str, Any], *, now: datetime, zone: tzinfo = UTC) -> None:
        super().__init__(data, now=now, zone=zone)
        self.fields["model"].widget.attrs |= {"list": "models", "autocomplete": "off"}


class SearchForm(FilterForm):
    """The bar of a list that can be searched as well."""

    q = forms.CharField(
        required=False,
        max_length=255,
        label="Search",
        widget=forms.TextInput(attrs={"type": "search", "data-search": ""}),
    )


class LevelForm(SearchForm):
    """The bar of a list whose items have a level."""

    level = one_of(Level)


class ClientForm(LevelForm):
    """The bar of a list whose items were made by some program."""

    client = forms.CharField(required=False, max_length=64)

    def __init__(self, data: Mapping[str, Any], *, now: datetime, zone: tzinfo = UTC) -> None:
        super().__init__(data, now=now, zone=zone)
        self.fields["client"].widget.attrs |= {"list": "clients", "autocomplete": "off"}


class ConversationFilterForm(ClientForm):
    """The bar above the conversations, with their order."""

    min_calls = forms.ChoiceField(
        required=False,
        label="Calls",
        choices=[
            ("", "Any number"),
            ("1", "Only one"),
            ("2", "More than one"),
            ("10", "10 or more"),
        ],
        error_messages={"invalid_choice": "%(value)s is not one of: 1, 2, 10"},
    )
    order = one_of(("newest",), blank="needs attention first")

    @property
    def is_narrowed(self) -> bool:
        return self.is_any_set(name for name in self.fields if name != "order")

    def filters(self) -> ConversationFilters:
        """The filters for the query; only after is_valid()."""
        values = self.values()
        del values["order"]
        least = values.pop("min_calls")
        return ConversationFilters(
            **values, min_calls=int(least) if least else None, is_one_shot=least == "1"
        )


_FOLDED = (
    "purpose",
    "pack",
    "conversation",
    "level_reason",
    "lane",
    "size",
    "variant",
    "tokens_over",
)


class QueryField(forms.CharField):
    """The bar of a list: a query of its fields (core.text.query_terms)."""

    def __init__(self, fields: Sequence[Field]) -> None:
        widget = forms.TextInput(
            attrs={
                "autocomplete": "off",
                "spellcheck": "false",
                "list": "query-words",
                "placeholder": "level:critical -cause:timeout has:trim latency:>2s",
            }
        )
        super().__init__(required=False, max_length=MOST_CHARS, label="Query", widget=widget)
        self.asked = tuple(fields)

    def clean(self, value: str) -> Query:
        """Raises ValidationError with the part that cannot be read."""
        try:
            return parse_query(super().clean(value), self.asked)
        except BadQuery as error:
            raise forms.ValidationError(str(error)) from None


class CallFilterForm(ClientForm):
    """The filters of the page of calls, as its address has them."""

    query = QueryField(CALL_FIELDS)
    cause = one_of((ANY_CAUSE, *FailureCause))
    level_reason = one_of(HealthReason, label="Why unknown")
    finish_reason = one_of(FinishReason, label="Finish reason")
    purpose = forms.CharField(required=False, max_length=32)
    pack = forms.CharField(required=False, max_length=128)
    conversation = forms.CharField(required=False, max_length=255)
    lane = one_of(Lane)
    size = one_of(BAND_LABELS, label="Prompt size")
    # Suggestions lead here by it: calls above a ceiling.
    tokens_over = forms.IntegerField(
        required=False, min_value=0, max_value=2**62, label="Prompt tokens over"
    )
    # Reports name any, and the models page leads here by each.
    variant = forms.CharField(required=False, max_length=32, label="Prompt variant")
    density = one_of(("compact",), blank="comfortable", label="Rows")

    def __init__(self, data: Mapping[str, Any], *, now: datetime, zone: tzinfo = UTC) -> None:
        super().__init__(data, now=now, zone=zone)
        for name in ("purpose", "pack", "variant"):
            self.fields[name].widget.attrs |= {"list": name + "s", "autocomplete": "off"}

    @property
    def has_more(self) -> bool:
        """Whether one of the filters is set that are folded away otherwise."""
        return any(self.data.get(name) for name in _FOLDED)

    @property
    def is_narrowed(self) -> bool:
        return self.is_any_set(name for name in self.fields if name != "density")

    def filters(self) -> CallFilters:
        """The filters for the query; only after is_valid()."""
        values = self.values()
        del values["density"]
        query: Query = values.pop("query")
        return CallFilters(**values, terms=query.terms or None)


class PlanFilterForm(SearchForm):
    """The filters of the page of plans, as its address has them."""

    variant = one_of(CALL_VARIANTS)
    outcome = one_of(PLAN_OUTCOMES)
    kind = one_of(PLAN_KINDS)
    tool = forms.CharField(required=False, max_length=255)
    intent = forms.CharField(required=False, max_length=16, label="Same intent as (its hash)")
    by = one_of(("intent",), blank="plan", label="A row for each")

    def __init__(self, data: Mapping[str, Any], *, now: datetime, zone: tzinfo = UTC) -> None:
        super().__init__(data, now=now, zone=zone)
        self.fields["tool"].widget.attrs |= {"list": "tools", "autocomplete": "off"}
        for name in ("model", "tool"):
            self.fields[name].widget.attrs |= {"placeholder": "whole id", "title": _WHOLE_ID}

    @property
    def has_more(self) -> bool:
        """Whether one of the filters is set that are folded away otherwise."""
        return any(self.data.get(name) for name in ("kind", "tool", "intent", "by"))

    @property
    def is_narrowed(self) -> bool:
        return self.is_any_set(name for name in self.fields if name != "by")

    def filters(self) -> dict[str, Any]:
        """The filters for the query; only after is_valid()."""
        return {name: value for name, value in self.values().items() if name != "by"}


class TrimFilterForm(FilterForm):
    """The filters of the page of fits, as its address has them."""

    client = forms.CharField(required=False, max_length=128)
    catalog = forms.CharField(required=False, max_length=120)
    cut = forms.CharField(required=False, max_length=64, label="What was cut")
    outcome = one_of(TrimOutcome)

    def __init__(self, data: Mapping[str, Any], *, now: datetime, zone: tzinfo = UTC) -> None:
        super().__init__(data, now=now, zone=zone)
        for name in ("client", "catalog", "cut"):
            self.fields[name].widget.attrs |= {"list": name + "s", "autocomplete": "off"}

    def filters(self) -> TrimFilters:
        """The filters for the query; only after is_valid()."""
        return TrimFilters(**self.values())


class ModelFilterForm(FilterForm):
    """The filters of the page of models, as its address has them; by: what has a row of its own in
    the map of prompt sizes."""

    purpose = forms.CharField(required=False, max_length=32)
    by = one_of(Rows, widget=forms.HiddenInput())

    def __init__(self, data: Mapping[str, Any], *, now: datetime, zone: tzinfo = UTC) -> None:
        super().__init__(data, now=now, zone=zone)
        self.fields["purpose"].widget.attrs |= {"list": "purposes", "autocomplete": "off"}

    @property
    def is_narrowed(self) -> bool:
        return self.is_any_set(name for name in self.fields if name != "by")

    @property
    def counted_purpose(self) -> str | None:
        """The purpose that figures are counted by: only the known ones are counted apart, any other
        stands for all others. Only after is_valid()."""
        given = self.cleaned_data["purpose"] or None
        return given if given is None or given in PURPOSES else OTHER

    @property
    def carried(self) -> dict[str, str]:
        """The range and the purpose of what is counted, as addresses of calls have them."""
        names = ("range", "since", "until")
        said = {name: self.data[name] for name in names if self.data.get(name)}
        return said | ({"purpose": self.counted_purpose} if self.counted_purpose else {})


class AuditForm(TimeForm):
    """What to look for in the audit log."""

    kind = one_of(KINDS)
    by = forms.CharField(required=False, max_length=150)
    subject = forms.CharField(required=False, max_length=255)

    def filters(self) -> AuditFilters:
        """Only after is_valid()."""
        return AuditFilters(**self.cleaned_data)
