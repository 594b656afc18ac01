"""The filter bars and other small forms: text into values, or a sentence that says the fix."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any

from django import forms
from django.core.exceptions import NON_FIELD_ERRORS
from django.utils import timezone

from helmdash.core.access.expiry import BadExpiry, parse_expiry
from helmdash.core.budgets.budgets import PromptVariant
from helmdash.core.budgets.health import HealthReason
from helmdash.core.budgets.levels import Level
from helmdash.core.calls.failures import FailureCause
from helmdash.core.calls.finish import FinishReason
from helmdash.core.catalog.catalog import CatalogError, parse_catalog
from helmdash.core.text.jsontext import MAX_DEPTH, is_too_deep
from helmdash.core.text.time_ranges import (
    BadRange,
    TimeRange,
    bound_text,
    parse_moment,
    parse_range,
)
from helmdash.operations.triage import Word
from helmdash.queries.access import SCOPES
from helmdash.queries.calls import ANY_CAUSE, CallFilters
from helmdash.queries.conversations.conversations import ConversationFilters
from helmdash.queries.failures import GroupState
from helmdash.queries.line_edits import Lines
from helmdash.queries.trims import TrimFilters, TrimOutcome

PLAN_KINDS = ("plan", "route")
PLAN_OUTCOMES = ("running", "ok", "gap", "partial", "failed")
_WHOLE_ID = "Only plans with exactly this id: a part of it finds nothing"
# Far beyond what any model writes at once; a larger number is a slip of the keyboard.
MOST_OUTPUT_TOKENS = 1_000_000
# A thousand times what the largest windows hold.
_MOST_TOKENS = 1_000_000_000

# What the time control offers by one click, and what it is called.
PRESETS = (("1h", "1 h"), ("24h", "24 h"), ("7d", "7 d"), ("30d", "30 d"), ("all", "All"))


def one_of(values: Iterable[str], *, blank: str = "Any", **options: Any) -> forms.ChoiceField:
    """A choice that may be left open; a wrong one is answered with the right ones."""
    known = list(values)
    return forms.ChoiceField(
        required=False,
        choices=[("", blank), *((value, value) for value in known)],
        error_messages={"invalid_choice": f"%(value)s is not one of: {', '.join(known)}"},
        **options,
    )


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


class CallFilterForm(ClientForm):
    """The filters of the page of calls, as its address has them."""

    cause = one_of((ANY_CAUSE, *FailureCause))
    level_reason = one_of(HealthReason, label="Why unknown")
    finish_reason = one_of(FinishReason, label="Finish reason")
    purpose = forms.CharField(required=False, max_length=32)
    pack = forms.CharField(required=False, max_length=128)
    conversation = forms.CharField(required=False, max_length=255)

    def __init__(self, data: Mapping[str, Any], *, now: datetime, zone: tzinfo = UTC) -> None:
        super().__init__(data, now=now, zone=zone)
        for name in ("purpose", "pack"):
            self.fields[name].widget.attrs |= {"list": name + "s", "autocomplete": "off"}

    @property
    def has_more(self) -> bool:
        """Whether one of the filters is set that are folded away otherwise."""
        folded = ("purpose", "pack", "conversation", "level_reason")
        return any(self.data.get(name) for name in folded)

    def filters(self) -> CallFilters:
        """The filters for the query; only after is_valid()."""
        return CallFilters(**self.values())


def _tokens(label: str) -> forms.IntegerField:
    return forms.IntegerField(
        required=False,
        min_value=1,
        max_value=_MOST_TOKENS,
        label=label,
        widget=forms.NumberInput(attrs={"placeholder": "default", "inputmode": "numeric"}),
    )


class LinesForm(forms.Form):
    """The lines of a budget, in tokens; left out: as the default has it."""

    caution = _tokens("Caution above, tokens")
    critical = _tokens("Critical above, tokens")
    window = _tokens("Context length, tokens")

    @staticmethod
    def values_of(lines: Lines) -> dict[str, int | None]:
        """What the form holds before anybody typed."""
        return {"caution": lines.caution, "critical": lines.critical, "window": lines.window}

    def lines(self) -> Lines:
        """The lines; only after is_valid()."""
        return Lines(**self.cleaned_data)

    def tell(self, problems: Iterable[tuple[str, str]]) -> None:
        """Say what is wrong with the row that they would make, once each."""
        for name, sentence in problems:
            field = _LINES.get(name)
            if sentence not in self.errors.get(field or NON_FIELD_ERRORS, ()):
                self.add_error(field, sentence)

    @property
    def told(self) -> list[tuple[str, str]]:
        """Label and sentence for each thing wrong; the label "" where it is of none."""
        return [
            (str(self.fields[name].label) if name in self.fields else "", str(message))
            for name, found in self.errors.items()
            for message in found
        ]


_LINES = {
    "optimal_max_tokens": "caution",
    "critical_max_tokens": "critical",
    "context_length": "window",
}


class SaidForm(forms.Form):
    """A small form whose faults are told in one line."""

    @property
    def problems(self) -> list[str]:
        """A sentence with its field for each thing wrong."""
        return [f"{name}: {error}" for name, errors in self.errors.items() for error in errors]


class FailureMarkForm(SaidForm):
    """What somebody says of a model's calls that failed for a cause."""

    cause = forms.TypedChoiceField(
        choices=[(each.value, each.value) for each in FailureCause], coerce=FailureCause
    )
    model = forms.CharField(max_length=255)
    state = forms.TypedChoiceField(
        choices=[(each.value, each.value) for each in GroupState], coerce=GroupState
    )


class TriageForm(SaidForm):
    """What somebody says of a conversation; text: the words of a note."""

    word = forms.TypedChoiceField(choices=[(each.value, each.value) for each in Word], coerce=Word)
    text = forms.CharField(required=False, max_length=500)

    def clean(self) -> None:
        if self.cleaned_data.get("word") is Word.NOTE and not self.cleaned_data.get("text"):
            self.add_error("text", "write what the next one should know")


class PlanFilterForm(SearchForm):
    """The filters of the page of plans, as its address has them."""

    variant = one_of(PromptVariant)
    outcome = one_of(PLAN_OUTCOMES)
    kind = one_of(PLAN_KINDS)
    tool = forms.CharField(required=False, max_length=255)

    def __init__(self, data: Mapping[str, Any], *, now: datetime, zone: tzinfo = UTC) -> None:
        super().__init__(data, now=now, zone=zone)
        self.fields["tool"].widget.attrs |= {"list": "tools", "autocomplete": "off"}
        for name in ("model", "tool"):
            self.fields[name].widget.attrs |= {"placeholder": "whole id", "title": _WHOLE_ID}

    @property
    def has_more(self) -> bool:
        """Whether one of the filters is set that are folded away otherwise."""
        return any(self.data.get(name) for name in ("kind", "tool"))


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
    """The filters of the page of models, as its address has them."""

    purpose = forms.CharField(required=False, max_length=32)

    def __init__(self, data: Mapping[str, Any], *, now: datetime, zone: tzinfo = UTC) -> None:
        super().__init__(data, now=now, zone=zone)
        self.fields["purpose"].widget.attrs |= {"list": "purposes", "autocomplete": "off"}


# So many faults of a catalog are shown; whoever has more fixes these first.
_FAULTS_SHOWN = 8
# What an object that somebody pastes has to be.
_CATALOG = 'must be an object with "packs" and "pipelines"'
_CONTEXT = 'must be an object, such as {"steps_taken": []}'


def _json_object(text: str, *, must_be: str) -> dict[str, object] | None:
    """What somebody typed as a JSON object; None for nothing. Raises ValidationError."""
    if not text.strip():
        return None
    if is_too_deep(text):
        raise forms.ValidationError(f"is not JSON: nested more than {MAX_DEPTH} levels deep")
    try:
        value: object = json.loads(text)
    except json.JSONDecodeError as error:
        raise forms.ValidationError(
            f"is not JSON: line {error.lineno}, column {error.colno}: {error.msg}"
        ) from None
    except ValueError:  # a number of thousands of digits
        raise forms.ValidationError("is not JSON that can be read") from None
    if not isinstance(value, dict):
        raise forms.ValidationError(must_be)
    return value


def _catalog(text: str) -> dict[str, object] | None:
    """A catalog that somebody pasted. Raises ValidationError with all that is wrong with it."""
    value = _json_object(text, must_be=_CATALOG)
    if value is not None:
        try:
            parse_catalog(value)
        except CatalogError as error:
            raise forms.ValidationError(catalog_faults(error)) from None
    return value


def catalog_faults(error: CatalogError) -> list[str]:
    """What is wrong with a catalog, by the place in it."""
    return [
        f"{fault.field.removeprefix('catalog.')}: {fault.message}"
        for fault in error.errors[:_FAULTS_SHOWN]
    ]


class FitForm(forms.Form):
    """What a fit needs. A blank catalog means the project's current one."""

    model = forms.CharField(
        max_length=255,
        widget=forms.TextInput(attrs={"list": "models", "autocomplete": "off"}),
        error_messages={"required": "name the model the catalog is for, such as openai/gpt-4o"},
    )
    intent = forms.CharField(
        max_length=20_000,
        widget=forms.Textarea(attrs={"rows": 3}),
        error_messages={"required": "say what the agent is to do, in its user's words"},
    )
    catalog = forms.CharField(
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 8, "spellcheck": "false"}),
    )

    def clean_catalog(self) -> dict[str, object] | None:
        return _catalog(self.cleaned_data["catalog"])


class PlanForm(forms.Form):
    """What a plan or a route is asked for with. Blank fields are left to the project's settings."""

    intent = forms.CharField(
        max_length=100_000,
        widget=forms.Textarea(attrs={"rows": 5, "data-search": ""}),
        error_messages={"required": "say what is to be done, in the words of a user"},
    )
    model = forms.CharField(
        required=False,
        max_length=255,
        widget=forms.TextInput(attrs={"list": "models", "autocomplete": "off"}),
    )
    prompt_variant = one_of(PromptVariant, blank="as the budget says", label="Prompt variant")
    max_tokens = forms.IntegerField(
        required=False, min_value=1, max_value=MOST_OUTPUT_TOKENS, label="Output, tokens at most"
    )
    context = forms.CharField(
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false"}),
    )
    catalog = forms.CharField(
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 8, "spellcheck": "false"}),
    )
    catalog_name = forms.CharField(
        required=False,
        max_length=128,
        label="Catalog by name",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    continues = forms.CharField(required=False, max_length=64, widget=forms.HiddenInput())

    def clean_context(self) -> dict[str, object] | None:
        return _json_object(self.cleaned_data["context"], must_be=_CONTEXT)

    def clean_catalog(self) -> dict[str, object] | None:
        return _catalog(self.cleaned_data["catalog"])

    @property
    def has_more(self) -> bool:
        """Whether a field is filled, or faulty, that is folded away otherwise."""
        names = set(self.fields) - {"intent", "model"}
        return any(self[name].value() or self[name].errors for name in names)


class RouteForm(PlanForm):
    """What a route is asked for with. Its prompt has no variants: only plans have them."""

    prompt_variant = None  # type: ignore[assignment]  # Django's way to leave a field out


class KeyForm(forms.Form):
    """The form of a new API key: a name, scopes that the person may give, an end."""

    name = forms.CharField(
        max_length=80,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
        error_messages={"required": "say who will use the key"},
    )
    scopes = forms.MultipleChoiceField(
        choices=[(scope, scope) for scope in SCOPES],
        error_messages={"required": "tick at least one scope"},
    )
    expires = forms.CharField(
        required=False, max_length=40, widget=forms.TextInput(attrs={"autocomplete": "off"})
    )

    def clean_expires(self) -> datetime | None:
        """When the key ends; None: never. Raises ValidationError for a text that names no moment to
        come."""
        try:
            return parse_expiry(self.cleaned_data["expires"], now=timezone.now())
        except BadExpiry as error:
            raise forms.ValidationError(str(error)) from None
