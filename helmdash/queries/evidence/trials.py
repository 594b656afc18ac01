"""Trials of suggestions: what the calls of either arm came to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Annotated, Any, Final

from django.db import connection
from django.db.models import QuerySet

from helmdash.answers import BLANK_IS_NULL, Doc, answer
from helmdash.core.budgets.budgets import BudgetFigures
from helmdash.core.budgets.prices import cost_usd
from helmdash.core.budgets.trials import Arm
from helmdash.core.evidence.trialling import ArmFigures, Difference, TrialState, difference
from helmdash.queries.budgets import budgets
from helmdash.records.models import Call, Trial, TrialCall


@answer("TrialArm")
@dataclass(frozen=True, slots=True, kw_only=True)
class TrialArm:
    """The calls of one arm."""

    arm: Arm
    conversations: int
    calls: int
    clean: int
    rate: Annotated[float | None, Doc("Share of clean calls. Null: no calls yet.")]
    low: Annotated[float | None, Doc("Its 95 % interval, by how conversations differ.")]
    high: float | None
    prompt_tokens: Annotated[int, Doc("As reported, of the calls that told.")]
    completion_tokens: int
    cost_usd: Annotated[float | None, Doc("By the prices of the budget. Null: it has none.")]


@answer("TrialDifference")
@dataclass(frozen=True, slots=True, kw_only=True)
class TrialDifference:
    """The suggested budget's rate of clean calls less today's, of one, with its 95 % interval."""

    points: float
    low: float
    high: float


@answer("Trial")
@dataclass(frozen=True, slots=True, kw_only=True)
class TrialView:
    """A suggestion that rules a share of a model's conversations for a while.

    `GET /calls?trial=` has its calls, with `:today` or `:suggested` behind the number those of one
    arm.
    """

    id: int
    state: Annotated[
        TrialState,
        Doc(
            "finished: its end was reached. stopped: clearly worse. decided: accepted or dismissed "
            "before, or its figure was edited."
        ),
    ]
    share: Annotated[float, Doc("Of the conversations, of one, that the suggested budget rules.")]
    most_conversations: Annotated[int | None, Doc("Ends it, in both arms together.")]
    until: Annotated[datetime | None, Doc("Ends it.")]
    method: Annotated[str, Doc("The test that stops it: docs/evidence.md.")]
    started_at: datetime
    started_by: Annotated[str, BLANK_IS_NULL]
    ended_at: datetime | None
    looked_at: Annotated[datetime | None, Doc("When its calls were counted; each minute.")]
    today: Annotated[TrialArm | None, Doc("Null: not counted yet.")]
    suggested: TrialArm | None
    difference: Annotated[TrialDifference | None, Doc("Null: an arm has no calls.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmResult:
    """What is kept of an arm: its figures, tokens, and what these cost."""

    figures: ArmFigures
    prompt_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None


_NOTHING: Final = (0,) * 10


def running(*, project_id: int | None = None) -> QuerySet[Trial]:
    """The trials that run, oldest first. project_id None: of all projects."""
    rows = Trial.objects.filter(state=TrialState.RUNNING.value).order_by("id")
    return rows if project_id is None else rows.filter(project_id=project_id)


def read_arms(row: Trial) -> dict[Arm, ArmResult]:
    """Count the calls of a trial by arm, and what they cost by today's prices. One query, of some
    hundred milliseconds for 100,000 calls, and that of the budgets.

    A call is clean as core.calls.outcomes has it. Calls that are deleted meanwhile count no more.
    """
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, [row.pk])
        found = {Arm(arm): tuple(int(each) for each in sums) for arm, *sums in cursor.fetchall()}
    prices = budgets.table(project_id=row.project_id).lookup(row.model_key, key=row.model_key)
    return {arm: _result(found.get(arm, _NOTHING), prices) for arm in Arm}


def stored(results: Mapping[Arm, ArmResult]) -> dict[str, object]:
    """Results as a row keeps them."""
    return {arm.value: asdict(each) for arm, each in results.items()}


def view_of(row: Trial) -> TrialView:
    """A stored row as it is shown."""
    arms = {arm: _read_result(row.result[arm.value]) for arm in Arm} if row.result else {}
    apart: Difference | None = None
    if arms:
        apart = difference(arms[Arm.TODAY].figures, arms[Arm.SUGGESTED].figures)
    return TrialView(
        id=row.pk,
        state=TrialState(row.state),
        share=row.share,
        most_conversations=row.most_conversations,
        until=row.until,
        method=row.method,
        started_at=row.started_at,
        started_by=row.started_by,
        ended_at=row.ended_at,
        looked_at=row.looked_at,
        today=_arm(Arm.TODAY, arms.get(Arm.TODAY)),
        suggested=_arm(Arm.SUGGESTED, arms.get(Arm.SUGGESTED)),
        difference=TrialDifference(points=apart.points, low=apart.low, high=apart.high)
        if apart
        else None,
    )


def _arm(arm: Arm, found: ArmResult | None) -> TrialArm | None:
    if found is None:
        return None
    interval = found.figures.interval
    return TrialArm(
        arm=arm,
        conversations=found.figures.conversations,
        calls=found.figures.calls,
        clean=found.figures.clean,
        rate=found.figures.rate,
        low=interval[0] if interval else None,
        high=interval[1] if interval else None,
        prompt_tokens=found.prompt_tokens,
        completion_tokens=found.completion_tokens,
        cost_usd=found.cost_usd,
    )


def _result(sums: tuple[int, ...], prices: BudgetFigures) -> ArmResult:
    *counts, prompt, cached, written, completion = sums
    conversations, calls, clean, calls_squared, clean_squared, product = counts
    return ArmResult(
        figures=ArmFigures(
            conversations=conversations,
            calls=calls,
            clean=clean,
            calls_squared=calls_squared,
            clean_squared=clean_squared,
            product=product,
        ),
        prompt_tokens=prompt,
        cached_tokens=cached,
        cache_write_tokens=written,
        completion_tokens=completion,
        cost_usd=cost_usd(
            prices, prompt=prompt, cached=cached, written=written, completion=completion
        ),
    )


def _read_result(told: Mapping[str, Any]) -> ArmResult:
    return ArmResult(**{**told, "figures": ArmFigures(**told["figures"])})


# By conversation first: the error of a rate is by how they differ (core.evidence.trialling).
_COUNT: Final = f"""
    SELECT arm, COUNT(*), SUM(n), SUM(c), SUM(n * n), SUM(c * c), SUM(n * c),
           SUM(prompt), SUM(cached), SUM(written), SUM(completion)
    FROM (
        SELECT t.arm AS arm, COUNT(*) AS n,
               SUM(CASE WHEN k.cause = '' AND k.status = 'success' THEN 1 ELSE 0 END) AS c,
               SUM(COALESCE(k.prompt_tokens, 0)) AS prompt,
               COALESCE(SUM(k.cached_tokens) FILTER (WHERE k.prompt_tokens IS NOT NULL), 0)
                   AS cached,
               COALESCE(SUM(k.cache_write_tokens) FILTER (WHERE k.prompt_tokens IS NOT NULL), 0)
                   AS written,
               SUM(COALESCE(k.completion_tokens, 0)) AS completion
        FROM {TrialCall._meta.db_table} t
        JOIN {Call._meta.db_table} k
          ON k.id = t.call_number AND k.started_at = t.started_at AND k.project_id = t.project_id
        WHERE t.trial_id = %s
        GROUP BY t.arm, t.unit
    ) AS units
    GROUP BY arm
"""  # names of our own tables
