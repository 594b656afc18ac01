"""Facts of fits out of their rows (core.rollups.fit_facts)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import orjson
from django.db.models import JSONField, QuerySet, TextField
from django.db.models.fields.json import KeyTransform
from django.db.models.functions import Cast, Coalesce

from helmdash.core.rollups.fit_facts import FitFacts
from helmdash.core.rollups.periods import quarter_of
from helmdash.records.models import Fit

_COLUMNS: Final = ("created_at", "model", "caller", "before_bytes", "after_bytes", "fits")
# Out of the Trim only where they stand nowhere else: that may be many kilobytes. As text, which
# `read_steps` reads several times as fast as the field would: lists have thousands of rows.
STEPS: Final = Cast(
    Coalesce("steps", KeyTransform("steps", "trim"), output_field=JSONField()), TextField()
)


def fit_facts_of(rows: QuerySet[Fit]) -> list[FitFacts]:
    """Of stored rows; one query."""
    found = rows.values_list(*_COLUMNS, STEPS)
    return [_facts(values, read_steps(text)) for *values, text in found]


def fit_facts_of_row(row: Mapping[str, Any]) -> FitFacts:
    """Of a row that is about to be inserted, by attribute name."""
    return _facts([row[name] for name in _COLUMNS], tuple(steps_of(row["trim"].get("steps"))))


def _facts(values: Sequence[Any], steps: tuple[tuple[str, int, int], ...]) -> FitFacts:
    """Of the values of _COLUMNS, and the steps of the receipt."""
    at, model, caller, before, after, fits = values
    return FitFacts(quarter_of(at), model, caller, before, after, fits, steps)


def read_steps(text: str | None) -> tuple[tuple[str, int, int], ...]:
    """Of the text that STEPS gives; what another version wrote that is no list has none. (SQLite
    gives a string without its quotes, which is no JSON.)"""
    return tuple(steps_of(orjson.loads(text))) if text and text.startswith("[") else ()


def steps_of(told: object) -> Iterator[tuple[str, int, int]]:
    """Label, entries and saved bytes of the steps that a receipt tells of; another version may have
    written it otherwise."""
    for each in told if isinstance(told, list) else ():
        match each:
            case {"label": str(label), "entries": int(entries), "bytes_saved": int(saved)}:
                yield label, entries, saved
