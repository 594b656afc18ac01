"""Loading the shipped budgets: missing rows are added, an operator's edits are never undone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from django.db import transaction
from simple_history.utils import bulk_create_with_history

from helmdash.core.access.permissions import SHELL
from helmdash.core.budgets import budgets as core
from helmdash.core.budgets.shipped import load_shipped
from helmdash.installation import FIXTURES
from helmdash.records.audit import note_row, values_of
from helmdash.records.models import Budget, BudgetAlias
from helmdash.records.models.budgets import SHIPPED_REASON

SHIPPED_FILE = FIXTURES / "budgets.toml"
_REASON = SHIPPED_REASON
_STORED = tuple(each.name for each in core.STORED_FIELDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One field of one shipped row that the stored row has otherwise."""

    key: str
    field: str
    stored: object
    shipped: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What a load added, and where the stored rows differ from the shipped ones."""

    added: tuple[str, ...]
    aliases_added: tuple[str, ...]
    differences: tuple[Difference, ...]
    left_deleted: tuple[str, ...]


def compare_budgets(*, path: Path = SHIPPED_FILE) -> tuple[Difference, ...]:
    """Where stored global rows differ from the shipped ones. Changes nothing."""
    shipped, _ = load_shipped(path.read_text(encoding="utf-8"))
    stored = _stored()
    return tuple(
        difference
        for budget in shipped
        if budget.key.lower() in stored
        for difference in _differences(stored[budget.key.lower()], budget)
    )


def load_budgets(*, path: Path = SHIPPED_FILE, update: bool = False) -> Loaded:
    """Add shipped rows and aliases that were never here; with `update`, overwrite differing ones.

    A row somebody deleted stays deleted: its history tells. Only the fallback comes back.
    """
    shipped, aliases = load_shipped(path.read_text(encoding="utf-8"))
    differences = compare_budgets(path=path)
    with transaction.atomic():
        added, left = _add_missing(shipped)
        aliases_added = _add_aliases(aliases)
        if update:
            _overwrite(shipped, {difference.key for difference in differences})
    return Loaded(
        added=added,
        aliases_added=aliases_added,
        differences=differences,
        left_deleted=left,
    )


def _stored() -> dict[str, Budget]:
    return {row.key.lower(): row for row in Budget.objects.filter(project__isnull=True)}


def _add_missing(shipped: tuple[core.BudgetSpec, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    stored = _stored()
    history = Budget.history.filter(project__isnull=True)
    once_here = {key.lower() for key in history.values_list("key", flat=True)}
    added, left = [], []
    for budget in shipped:
        key = budget.key.lower()
        if key in stored:
            continue
        # The fallback is no choice: without it nothing can be looked up at all.
        if key and key in once_here:
            left.append(budget.key)
            continue
        added.append(_filled(Budget(), budget))
    # All at once: row by row a first start, and each test with budgets, took ten times as long.
    bulk_create_with_history(added, Budget, default_change_reason=_REASON)
    return tuple(row.key for row in added), tuple(left)


def _add_aliases(aliases: tuple[core.Alias, ...]) -> tuple[str, ...]:
    once_here = {p.lower() for p in BudgetAlias.history.values_list("prefix", flat=True)}
    added = [
        BudgetAlias(prefix=alias.prefix, target=alias.target, evidence=alias.evidence)
        for alias in aliases
        if alias.prefix.lower() not in once_here
    ]
    bulk_create_with_history(added, BudgetAlias)
    return tuple(row.prefix for row in added)


def _overwrite(shipped: tuple[core.BudgetSpec, ...], keys: set[str]) -> None:
    stored = _stored()
    for budget in shipped:
        if budget.key in keys:
            before = values_of(stored[budget.key.lower()])
            row = _filled(stored[budget.key.lower()], budget)
            # Read by django-simple-history.
            row._change_reason = _REASON  # type: ignore[attr-defined]
            row.save()
            note_row(actor=SHELL, row=row, before=before)


def _filled(row: Budget, budget: core.BudgetSpec) -> Budget:
    for each in core.STORED_FIELDS:
        setattr(row, each.name, each.stored(getattr(budget, each.name)))
    return row


def _differences(row: Budget, budget: core.BudgetSpec) -> list[Difference]:
    stored = row.to_core()
    return [
        Difference(
            key=budget.key,
            field=name,
            stored=getattr(stored, name),
            shipped=getattr(budget, name),
        )
        for name in _STORED
        if getattr(stored, name) != getattr(budget, name)
    ]
