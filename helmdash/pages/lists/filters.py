"""The filter bars of the pages: text of an address into values, or a sentence with the fix."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any

from django import forms

from helmdash.core.evidence.net_value import Shortening
from helmdash.core.rollups.facts import OTHER, PURPOSES
from helmdash.core.text.time_ranges import (
    BadRange,
    TimeRange,
    bound_text,
    parse_moment,
    parse_range,
)
from helmdash.pages.forms.forms import one_of
from helmdash.pages.parts.charts.heat_map import Rows
from helmdash.queries.access.audit import KINDS, AuditFilters
from helmdash.queries.evidence.net_value import MOST_READ, NetSide
from helmdash.queries.evidence.shortened import NetPart

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
        return {
            name: None if value in ("", []) else value for name, value in self.cleaned_data.items()
        }

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


class NetValueForm(FilterForm):
    """Which shortened prompts are looked at, as the page's address has them."""

    kind = one_of(Shortening)
    part = one_of(NetPart, widget=forms.HiddenInput())
    # As many as another page has added up; all that are read where nothing is said.
    newest = forms.IntegerField(
        required=False, min_value=1, max_value=MOST_READ, widget=forms.HiddenInput()
    )
    rows = one_of(("all",))

    @property
    def has_all_rows(self) -> bool:
        """Whether each of them is listed, or only as many as a person reads."""
        return self.data.get("rows") == "all"

    def filters(self) -> dict[str, Any]:
        """The arguments of the query; only after is_valid()."""
        found = self.values()
        return {
            "since": found["since"],
            "until": found["until"],
            "model": found["model"],
            "kind": Shortening(found["kind"]) if found["kind"] else None,
            "part": NetPart(found["part"]) if found["part"] else None,
            "most": found["newest"] or MOST_READ,
        }


class NetCallsForm(NetValueForm):
    """Which calls beside shortened prompts: of all that are added up, or of one, which is told by
    the call of its Trim, or by the round that it opened."""

    side = one_of(NetSide)
    only = one_of(("clean",))
    call = forms.CharField(required=False, max_length=128)
    conversation = forms.CharField(required=False, max_length=255)
    round = forms.IntegerField(required=False, min_value=1, max_value=2**31 - 1)

    @property
    def of_one(self) -> dict[str, Any] | None:
        """The arguments that tell the one; None: all of them. Only after is_valid()."""
        given = self.cleaned_data
        if given["call"]:
            return {"call_id": given["call"]}
        if given["conversation"] and given["round"]:
            return {"conversation": given["conversation"], "round_number": given["round"]}
        return None

    @property
    def of_side(self) -> dict[str, Any]:
        """The arguments that tell which of their calls. Only after is_valid()."""
        given = self.cleaned_data
        return {"side": NetSide(given["side"] or "before"), "only_clean": bool(given["only"])}


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
