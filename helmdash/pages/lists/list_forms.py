"""The bars above the lists: a query, and controls that say the same, as addresses have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any, ClassVar

from django import forms

from helmdash.core.budgets.budgets import PromptVariant
from helmdash.core.budgets.health import HealthReason
from helmdash.core.budgets.levels import Level
from helmdash.core.budgets.trials import TRIAL_PATTERN
from helmdash.core.calls.failures import FailureCause
from helmdash.core.calls.finish import FinishReason
from helmdash.core.calls.lanes import Lane
from helmdash.core.rollups.facts import BAND_LABELS, NO_VARIANT
from helmdash.core.text.query_terms import MOST_CHARS, BadQuery, Field, Query, parse_query
from helmdash.pages.forms.forms import one_of
from helmdash.pages.lists.filters import FilterForm
from helmdash.pages.parts.lists.list_columns import LIST_COLUMNS
from helmdash.queries.calls.filters import CallFilters
from helmdash.queries.calls.terms import ANY_CAUSE, CALL_FIELDS
from helmdash.queries.conversations.filters import CONVERSATION_TERMS, ConversationFilters
from helmdash.queries.fitting.trim_filters import TRIM_FIELDS, TrimFilters, TrimOutcome
from helmdash.queries.plans.filters import OUTCOMES, PLAN_TERMS

_WHOLE_ID = "Only plans with exactly this id: a part of it finds nothing"
# What the calls' filter by variant offers.
CALL_VARIANTS = (*PromptVariant, NO_VARIANT)


def _trial_field() -> forms.RegexField:
    return forms.RegexField(
        TRIAL_PATTERN,
        required=False,
        label="Trial",
        error_messages={"invalid": "Write a trial's number, such as 12 or 12:suggested."},
    )


class QueryField(forms.CharField):
    """The bar of a list: a query of its fields (core.text.query_terms)."""

    def __init__(self, fields: Sequence[Field], *, example: str) -> None:
        widget = forms.TextInput(
            attrs={
                "autocomplete": "off",
                "spellcheck": "false",
                "list": "query-words",
                "placeholder": example,
            }
        )
        super().__init__(required=False, max_length=MOST_CHARS, label="Query", widget=widget)
        self.asked = tuple(fields)
        self.example = example

    def clean(self, value: str) -> Query:
        """Raises ValidationError with the part that cannot be read."""
        try:
            return parse_query(super().clean(value), self.asked)
        except BadQuery as error:
            raise forms.ValidationError(str(error)) from None


class OrderField(forms.ChoiceField):
    """The order of a list; the first one is that of an address which says none, and may be said."""

    first = ""

    def valid_value(self, value: object) -> bool:
        return value == self.first or super().valid_value(value)


class ListForm(FilterForm):
    """What the bars of all lists have: a search by words, a query, and how the rows look.

    noun: the list, as its address has it. orders: what it may be sorted by, by the names that
    queries have (call_listing.SORTED …), each with its words for the largest first and for the
    smallest first; first_order: that of an address which says none. completed: fields with values
    to choose from. folded: filters that are folded away where none of them is set. looks: what
    narrows nothing.
    """

    noun: ClassVar[str]
    completed: ClassVar[Sequence[str]] = ()
    folded: ClassVar[Sequence[str]] = ()
    looks: ClassVar[Sequence[str]] = ("sort", "density", "columns")
    orders: ClassVar[Mapping[str, tuple[str, str]]] = {}
    first_order: ClassVar[str] = ""

    q = forms.CharField(
        required=False,
        max_length=255,
        label="Search",
        widget=forms.TextInput(attrs={"type": "search", "data-search": ""}),
    )
    sort = OrderField(required=False, label="Order")
    density = one_of(("compact",), blank="comfortable", label="Rows")
    columns = forms.MultipleChoiceField(required=False, label="Columns")

    def __init__(self, data: Mapping[str, Any], *, now: datetime, zone: tzinfo = UTC) -> None:
        super().__init__(data, now=now, zone=zone)
        known = {
            text: words
            for name, (down, up) in self.orders.items()
            for text, words in ((f"-{name}", down), (name, up))
            if words
        }
        sort = self.fields["sort"]
        assert isinstance(sort, OrderField)
        sort.first = self.first_order
        sort.choices = [
            ("", known[self.first_order]),
            *((text, words) for text, words in known.items() if text != self.first_order),
        ]
        sort.error_messages["invalid_choice"] = f"%(value)s is not one of: {', '.join(known)}"
        columns = self.fields["columns"]
        assert isinstance(columns, forms.MultipleChoiceField)
        listed = LIST_COLUMNS[self.noun].columns
        columns.choices = [(each.name, each.label) for each in listed]
        columns.error_messages["invalid_choice"] = (
            f"%(value)s is not one of: {', '.join(each.name for each in listed)}"
        )
        for name in self.completed:
            self.fields[name].widget.attrs |= {"list": name + "s", "autocomplete": "off"}

    @property
    def has_more(self) -> bool:
        """Whether one of the filters is set that are folded away otherwise."""
        return any(self.data.get(name) for name in self.folded)

    @property
    def is_narrowed(self) -> bool:
        return self.is_any_set(name for name in self.fields if name not in self.looks)

    def clean_sort(self) -> str:
        """The order of the list, as queries have it."""
        return self.cleaned_data["sort"] or self.first_order

    @property
    def sorting(self) -> str:
        """The order in force, as an address has it."""
        return str(self.data.get("sort", "")) or self.first_order

    @property
    def order_words(self) -> str:
        """The order in force, in words."""
        name = self.sorting.removeprefix("-")
        down, up = self.orders[name if name in self.orders else self.first_order.removeprefix("-")]
        return down if self.sorting.startswith("-") else up

    @property
    def chosen(self) -> list[str]:
        """The names of the columns that somebody chose; none: those that the list has at first."""
        return list(self.cleaned_data.get("columns", ())) if self.is_valid() else []

    @property
    def column_choices(self) -> list[tuple[str, str, bool]]:
        """Name and label of each column, and whether it is shown."""
        known = LIST_COLUMNS[self.noun]
        shown = self.chosen or known.first
        return [(each.name, each.label, each.name in shown) for each in known.columns]

    def asked(self) -> dict[str, Any]:
        """All that narrows the list, with the terms of the query; only after is_valid()."""
        values = {name: value for name, value in self.values().items() if name not in self.looks}
        query: Query | None = values.pop("query", None)
        return values | {"terms": query.terms or None if query else None}


class ConversationFilterForm(ListForm):
    """The bar above the conversations, with their order."""

    noun = "conversations"
    completed = ("client",)
    looks = (*ListForm.looks, "order")
    first_order = "attention"
    orders = {
        "attention": ("", "worst first"),
        "latest": ("newest first", "oldest first"),
        "prompt": ("largest prompt first", "smallest prompt first"),
        "calls": ("most calls first", "fewest calls first"),
        "failed": ("most failed first", "fewest failed first"),
        "trimmed": ("most trimmed first", "fewest trimmed first"),
    }

    query = QueryField(
        CONVERSATION_TERMS.fields, example="level:critical -has:clear calls:>20 failed:>0"
    )
    level = one_of(Level)
    client = forms.CharField(required=False, max_length=64)
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
    # Trials of suggestions lead here by the conversations of each arm.
    trial = _trial_field()
    # As addresses said it before there were other orders.
    order = one_of(("newest",), blank="worst first")

    def clean(self) -> None:
        super().clean()
        if self.cleaned_data.get("order") == "newest" and not self.data.get("sort"):
            self.cleaned_data["sort"] = "-latest"

    @property
    def sorting(self) -> str:
        """The order in force, as an address has it."""
        is_newest = self.data.get("order") == "newest" and not self.data.get("sort")
        return "-latest" if is_newest else super().sorting

    def filters(self) -> ConversationFilters:
        """The filters for the query; only after is_valid()."""
        values = self.asked()
        least = values.pop("min_calls")
        return ConversationFilters(
            **values, min_calls=int(least) if least else None, is_one_shot=least == "1"
        )


class CallFilterForm(ListForm):
    """The filters of the page of calls, as its address has them."""

    noun = "calls"
    completed = ("client", "purpose", "pack", "variant")
    first_order = "-started"
    orders = {
        "started": ("newest first", "oldest first"),
        "prompt": ("largest prompt first", "smallest prompt first"),
        "output": ("most output first", "least output first"),
        "latency": ("slowest first", "fastest first"),
        "ttft": ("longest to first token first", "shortest to first token first"),
    }
    folded = (
        *("purpose", "pack", "conversation", "level_reason", "lane", "size", "variant"),
        *("tokens_over", "trial"),
    )

    query = QueryField(CALL_FIELDS, example="level:critical -cause:timeout has:trim latency:>2s")
    level = one_of(Level)
    client = forms.CharField(required=False, max_length=64)
    cause = one_of((ANY_CAUSE, *FailureCause), said={ANY_CAUSE: "all that failed"})
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
    # They lead here, too, by the calls of each arm.
    trial = _trial_field()
    # Reports name any, and the models page leads here by each.
    variant = forms.CharField(required=False, max_length=32, label="Prompt variant")

    def filters(self) -> CallFilters:
        """The filters for the query; only after is_valid()."""
        return CallFilters(**self.asked())


class PlanFilterForm(ListForm):
    """The filters of the page of plans, as its address has them."""

    noun = "plans"
    completed = ("tool",)
    folded = ("kind", "tool", "intent", "by")
    looks = (*ListForm.looks, "by")
    first_order = "-at"
    orders = {
        "at": ("newest first", "oldest first"),
        "steps": ("most steps first", "fewest steps first"),
        "latency": ("slowest first", "fastest first"),
        "before": ("largest catalog first", "smallest catalog first"),
        "after": ("largest shown first", "smallest shown first"),
    }

    query = QueryField(PLAN_TERMS.fields, example="outcome:gap -model:openrouter/* latency:>5s")
    variant = one_of(CALL_VARIANTS)
    outcome = one_of(OUTCOMES)
    kind = one_of(("plan", "route"))
    tool = forms.CharField(required=False, max_length=255)
    intent = forms.CharField(required=False, max_length=16, label="Same intent as (its hash)")
    by = one_of(("intent",), blank="plan", label="A row for each")

    def __init__(self, data: Mapping[str, Any], *, now: datetime, zone: tzinfo = UTC) -> None:
        super().__init__(data, now=now, zone=zone)
        for name in ("model", "tool"):
            self.fields[name].widget.attrs |= {"placeholder": "whole id", "title": _WHOLE_ID}

    def filters(self) -> dict[str, Any]:
        """The filters for the query; only after is_valid()."""
        return self.asked()


class TrimFilterForm(ListForm):
    """The filters of the page of fits, as its address has them."""

    noun = "trims"
    completed = ("client", "catalog", "cut")
    first_order = "-at"
    orders = {
        "at": ("newest first", "oldest first"),
        "before": ("largest before first", "smallest before first"),
        "after": ("largest after first", "smallest after first"),
        "saved": ("most cut first", "least cut first"),
    }

    query = QueryField(TRIM_FIELDS, example="outcome:over -model:openai/* saved:>10k")
    client = forms.CharField(required=False, max_length=128)
    catalog = forms.CharField(required=False, max_length=120)
    cut = forms.CharField(required=False, max_length=64, label="What was cut")
    outcome = one_of(TrimOutcome)

    def filters(self) -> TrimFilters:
        """The filters for the query; only after is_valid()."""
        return TrimFilters(**self.asked())
