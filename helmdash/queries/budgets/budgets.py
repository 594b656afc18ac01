"""Budgets as they rule now: the table of a project, its explanation, and the whole table.

The table is cached in each process and checked against the edits there are at every use, so an edit
rules the very next fit everywhere (ADR 3).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from typing import Annotated

from django.db import connection
from django.db.models import OuterRef, Q, QuerySet, Subquery

from helmdash.answers import INLINE, answer
from helmdash.core.budgets import budgets as core
from helmdash.core.budgets.budget_table import BudgetTable
from helmdash.core.budgets.learned_windows import Variant, WindowReport, WindowSource
from helmdash.core.budgets.published import PublishedList, read_published
from helmdash.core.budgets.shipped import load_variants
from helmdash.core.budgets.trials import TrialRule
from helmdash.core.evidence.trialling import TrialState
from helmdash.installation import FIXTURES
from helmdash.queries.budgets import budget_origins
from helmdash.queries.lists.paging import Page, decode_number_cursor, encode_cursor
from helmdash.records import models as stored
from helmdash.records.models import Budget, BudgetAlias
from helmdash.records.statements.direct import Question, ask_prepared, is_postgres

# For rows that were changed past their history, by SQL or a restore. Reading the table takes 15 ms,
# in the middle of a transaction's way: too much for once a second.
_MAX_AGE_SECONDS = 10.0

POLICY = (
    "A model id is looked up exactly, then by the longest key that it starts with, then by alias, "
    "and else gets the fallback. Tier is how far structured output can be trusted under load: "
    "A sees the whole catalog (max_catalog_bytes 0 = no compaction), B and C a smaller one. "
    "An id that ends in :free is treated as tier C. Budgets are edited by "
    "hand, on their page or in the admin."
)


@answer("Budget")
@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetRow:
    """One row; null stands for the default."""

    id: int
    budget: Annotated[core.BudgetSpec, INLINE]
    project: str | None
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetList(Page[BudgetRow]):
    """A page of budgets, in table order."""

    items: tuple[BudgetRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextBudgets:
    """Every enabled rule with its effective figures (`helmdeck://context-budgets`)."""

    fetched_at: datetime
    fallback: core.EffectiveBudget
    budgets: tuple[core.EffectiveBudget, ...]
    policy: str


@dataclass(frozen=True, slots=True)
class _Cached:
    revision: tuple[object, ...]
    read_at: float
    table: BudgetTable


_cache: dict[int | None, _Cached] = {}
_lock = threading.Lock()


def table(*, project_id: int | None) -> BudgetTable:
    """The budgets that govern a project: global rows, and its own in their place. project_id None:
    the global rows alone.

    One query when nothing was edited or learned lately, five otherwise, and one more while a trial
    runs anywhere.
    """
    revision = _revision()
    # The clock only ages the cache: no result depends on it.
    moment = time.monotonic()
    cached = _cache.get(project_id)
    if (
        cached is not None
        and cached.revision == revision
        and moment - cached.read_at < _MAX_AGE_SECONDS
    ):
        return cached.table
    is_tried = bool(revision[-1])
    found = _read_table(project_id)
    if is_tried:
        found = found.with_trials(_trials(project_id))
    fresh = _Cached(revision=revision, read_at=moment, table=found)
    with _lock:
        _cache[project_id] = fresh
    return fresh.table


def newest_known(*, project_id: int | None) -> BudgetTable | None:
    """The budgets as this process read them last, without a query; None: too long ago, or never.
    Who uses them asks for `table` before anything comes of it."""
    cached = _cache.get(project_id)
    if cached is None or time.monotonic() - cached.read_at >= _MAX_AGE_SECONDS:
        return None
    return cached.table


def revision_question() -> Question:
    """What `table` asks first."""
    return Question(_revision_statement(), ())


def resolve(*, project_id: int | None, model: str) -> core.Resolution:
    """Which rule governs a model, which others could have, and the effective numbers. project_id
    None: by the global rows alone."""
    return table(project_id=project_id).resolve(model)


def page(*, project_id: int | None, cursor: str | None = None, limit: int = 50) -> BudgetList:
    """Rows a project is governed by, in table order: global ones and its own. One query.

    project_id None: the global ones alone. cursor None: from the first.

    Raises BadCursor.
    """
    rows = _visible(project_id).order_by("id")
    if cursor:
        rows = rows.filter(id__gt=decode_number_cursor(cursor))
    found = list(rows.select_related("project")[: limit + 1])
    return BudgetList(
        items=tuple(_row(row) for row in found[:limit]),
        next=encode_cursor(found[limit - 1].pk) if len(found) > limit else None,
    )


def some(*, project_id: int | None, numbers: Collection[int]) -> tuple[BudgetRow, ...]:
    """Rows by number, in table order; those that the project does not see are left out. One
    query."""
    rows = _visible(project_id).filter(pk__in=numbers).order_by("id")
    return tuple(_row(row) for row in rows.select_related("project"))


def keys(*, project_id: int | None) -> dict[int, str]:
    """The keys of all rows that the project sees, by number, in table order. One query."""
    return dict(_visible(project_id).order_by("id").values_list("id", "key"))


def find(*, project_id: int | None, budget_id: int) -> BudgetRow | None:
    """One row; None where it does not exist or the project (None: of global rows) may not see
    it."""
    row = _visible(project_id).select_related("project").filter(pk=budget_id).first()
    return _row(row) if row else None


def context_budgets(*, project_id: int | None, now: datetime) -> ContextBudgets:
    """Every enabled rule with its effective numbers, for operators and agents to audit. project_id
    None: the global ones alone."""
    rules = table(project_id=project_id)
    keys = [row.key for row in _visible(project_id).filter(enabled=True).order_by("id")]
    return ContextBudgets(
        fetched_at=now,
        fallback=rules.lookup(""),
        budgets=tuple(rules.lookup(key) for key in dict.fromkeys(keys) if key),
        policy=POLICY,
    )


def forget_cache() -> None:
    """Drop the cached tables: for tests that replace the whole database."""
    with _lock:
        _cache.clear()


def _visible(project_id: int | None) -> QuerySet[Budget]:
    return Budget.objects.filter(Q(project__isnull=True) | Q(project_id=project_id))


def _row(row: Budget) -> BudgetRow:
    return BudgetRow(
        id=row.pk,
        project=row.project.slug if row.project else None,
        budget=row.to_core(),
        updated_at=row.updated_at,
    )


def _read_table(project_id: int | None) -> BudgetTable:
    rows = list(_visible(project_id).order_by("id"))
    by = budget_origins.windows_by(rows)
    return BudgetTable(
        [replace(row.to_core(), window_by=by[row.pk]) for row in rows],
        [row.to_core() for row in BudgetAlias.objects.order_by("id")],
        windows=_windows(project_id),
        variants=_variants(),
        published=published_list(),
    )


@cache
def published_list() -> PublishedList:
    """What vendors publish of their models; it holds where the fallback row says so."""
    return read_published((FIXTURES / "published_models.json").read_text(encoding="utf-8"))


def _trials(project_id: int | None) -> Iterator[TrialRule]:
    rows = stored.Trial.objects.filter(project=project_id, state=TrialState.RUNNING.value)
    for row in rows.order_by("id"):
        yield TrialRule(
            id=row.pk,
            model_key=row.model_key,
            changes=row.changes,
            share=row.share,
            since=row.started_at,
        )


def _windows(project_id: int | None) -> Iterator[WindowReport]:
    began = stored.CallName.objects.filter(project=project_id, name=OuterRef("call_name"))
    rows = stored.LearnedWindow.objects.filter(project=project_id)
    for row in rows.annotate(told_at=Subquery(began.values("started_at"))):
        yield WindowReport(
            key=row.model_key,
            source=WindowSource(row.source),
            tokens=row.tokens,
            seen_at=row.seen_at,
            call_id=row.call_name,
            told_at=row.told_at,
        )


@cache
def _variants() -> tuple[Variant, ...]:
    path = FIXTURES / "budgets.toml"
    return load_variants(path.read_text(encoding="utf-8"))


def _revision() -> tuple[object, ...]:
    """The edits of either table, which always leave a history row, what was learned, and how many
    trials there were and run.

    Counted as well: of two edits whose transactions overlap, the older may be seen last.
    """
    return tuple(ask_prepared(*revision_question())[0])


@cache
def _revision_statement() -> str:
    # Made once: `history` builds a manager class each time, half a millisecond on every call.
    quote = connection.ops.quote_name
    budgets, aliases = Budget.history.model, BudgetAlias.history.model
    windows = quote(stored.LearnedWindow._meta.db_table)
    edits = [quote(history._meta.db_table) for history in (budgets, aliases)]
    asked: list[tuple[str, tuple[str, ...]]]
    asked = [(of, ("MAX(history_id)", "COUNT(*)")) for of in edits]
    asked.append((windows, ("MAX(seen_at)", "SUM(tokens)", "COUNT(*)")))
    told = [f"(SELECT {each} FROM {of})" for of, whats in asked for each in _at_once(whats)]
    told += ["MAX(id)", f"COUNT(*) FILTER (WHERE state = '{TrialState.RUNNING.value}')"]
    trials = quote(stored.Trial._meta.db_table)
    return f"SELECT {', '.join(told)} FROM {trials}"


def _at_once(whats: tuple[str, ...]) -> tuple[str, ...]:
    """PostgreSQL takes some 20 us to begin to read a table, however few its rows. SQLite finds the
    newest by the index, and counts all rows by pages, where it would read them for both."""
    return (f"ROW({', '.join(whats)})::text",) if is_postgres() else whats
