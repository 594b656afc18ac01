"""Totals of recorded calls by model, for metrics: from rollups, in the same time for any history.

They begin with the oldest rollup that is kept and grow with each call; they fall only where calls
are erased or rollups reach the end of their retention, which a scraper takes for a restart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from helmdash.core.budgets.levels import Level
from helmdash.core.rollups.evidence_facts import REPLY_HEADS
from helmdash.core.rollups.figures import (
    CALLS,
    CUTS,
    Counts,
    Distribution,
    Marginal,
    Tokens,
    add,
    under,
)
from helmdash.queries import rollups
from helmdash.queries.access.access import projects
from helmdash.queries.conversations import conversations
from helmdash.queries.conversations.conversations import opened_rounds

# A label of a metric is kept by a scraper for ever: the models that are called most have one each.
MOST_MODELS: Final = 200
OTHER_MODELS: Final = "_OTHER"
_TOLD: Final = (
    Distribution.PROMPT_TOKENS,
    Distribution.FULLNESS,
    Distribution.LATENCY_MS,
    Distribution.TTFT_MS,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTotals:
    """What was counted of a model. tokens and told: sums, and of how many calls. causes: "" for
    calls without a failure. Distributions are counts by bucket (core.rollups.buckets)."""

    model: str
    calls: int
    causes: Mapping[str, int]
    cuts: int
    tokens: Mapping[Tokens, int]
    told: Mapping[Tokens, int]
    distributions: Mapping[Distribution, Mapping[int, int]]
    # Replies that ended or were cut off, by the bucket of their tokens.
    replies: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageTotals:
    """Of a project, or of all together. is_partial: calls from before an
    upgrade are still to be counted."""

    models: tuple[ModelTotals, ...] = ()
    levels: Mapping[Level, int] = field(default_factory=dict)
    # Rounds that something else than the first call has opened: clear, compaction.
    rounds: Mapping[str, int] = field(default_factory=dict)
    is_partial: bool = False


def usage_totals(*, project_id: int | None) -> UsageTotals:
    """Of a project; None: of all together. Seven queries for each project."""
    by_model: dict[str, Counts] = {}
    replies: dict[str, Counts] = {}
    levels: Counter[Level] = Counter()
    rounds: Counter[str] = Counter()
    is_partial = False
    for project in projects():
        if project_id not in (None, project.id):
            continue
        found = rollups.figures(
            project_id=project.id,
            marginal=Marginal.MODEL,
            since=None,
            until=None,
            distributions=_TOLD,
        )
        levels.update(conversations.counters(project_id=project.id))
        rounds.update(opened_rounds(project_id=project.id))
        if found is None:
            is_partial = True
            continue
        _add_replies(replies, project.id)
        for key, counts in found.totals().items():
            add(by_model.setdefault(key[0], {}), counts)
    ranked = sorted(by_model.items(), key=lambda pair: (-pair[1][CALLS], pair[0]))
    others: Counts = {}
    for model, counts in ranked[MOST_MODELS:]:
        add(others, counts)
        add(replies.setdefault(OTHER_MODELS, {}), replies.get(model, {}))
    shown = [*ranked[:MOST_MODELS], *([(OTHER_MODELS, others)] if others else [])]
    return UsageTotals(
        models=tuple(_totals(model, counts, replies.get(model, {})) for model, counts in shown),
        levels=levels,
        rounds=rounds,
        is_partial=is_partial,
    )


def _add_replies(by_model: dict[str, Counts], project_id: int) -> None:
    found = rollups.figures(
        project_id=project_id, marginal=Marginal.EVIDENCE, since=None, until=None
    )
    for key, counts in found.totals().items() if found is not None else ():
        for head in REPLY_HEADS:
            add(by_model.setdefault(key[0], {}), under(counts, head))


def _totals(model: str, counts: Counts, replies: Counts) -> ModelTotals:
    causes = under(counts, "c")
    clean = counts[CALLS] - sum(causes.values())
    return ModelTotals(
        model=model,
        calls=counts[CALLS],
        causes={**causes, **({"": clean} if clean > 0 else {})},
        cuts=counts.get(CUTS, 0),
        tokens={each: counts.get(each.value, 0) for each in Tokens},
        told={each: counts.get(f"{each.value}#", 0) for each in Tokens},
        distributions={
            each: {int(bucket): n for bucket, n in under(counts, each.value).items()}
            for each in _TOLD
        },
        replies={int(bucket): n for bucket, n in replies.items()},
    )
