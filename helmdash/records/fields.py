"""Small builders for columns and constraints that many tables share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import models
from django.db.models import Q


def one_of(table: str, column: str, values: Sequence[str]) -> models.CheckConstraint:
    """The column holds one of these words, in the database and not only in our code."""
    return models.CheckConstraint(
        condition=Q(**{f"{column}__in": list(values)}), name=f"{table}_{column}_known"
    )


def count_field(help_text: str = "") -> models.PositiveBigIntegerField[Any, Any]:
    """Tokens, bytes or milliseconds; null means not reported (never zero for unknown)."""
    return models.PositiveBigIntegerField(null=True, blank=True, help_text=help_text)


def word_field(max_length: int) -> models.CharField[Any, Any]:
    """A short text that may be missing; the empty string says so."""
    return models.CharField(max_length=max_length, default="", blank=True)


def name_field(max_length: int, help_text: str = "") -> models.CharField[Any, Any]:
    """A short text that may be unknown: null. Adding such a column costs nothing, even to a table
    of millions of rows, and code that does not know it yet can go on writing."""
    return models.CharField(max_length=max_length, null=True, blank=True, help_text=help_text)
