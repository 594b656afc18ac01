"""What recorded calls teach about windows: refusals that name one, servers that say one, proofs.

Kept in the transaction that stores the calls, a row for each model and source
(core.budgets.learned_windows decides what counts). Most calls teach nothing, and cost a few
comparisons.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta

from helmdash.core.budgets.budget_table import BudgetTable
from helmdash.core.budgets.health import HealthReason
from helmdash.core.budgets.learned_windows import WindowReport, WindowSource
from helmdash.operations.recording.judged.judging import Judged
from helmdash.records import models as stored


def keep_windows(
    *, project_id: int, items: Iterable[Judged], rules: BudgetTable, now: datetime
) -> None:
    """Store what these calls teach. Inside the transaction that stores them."""
    known, taught = rules, set[tuple[str, WindowSource]]()
    for turn, item in enumerate(items):
        if told := tuple(learned_from(item, known, now, turn=turn)):
            known = known.with_windows(told)
            taught.update((window.key, window.source) for window in told)
    if taught:
        # In one order, so that two writers cannot wait for each other.
        _store(project_id, sorted(taught), known, now)


def learned_from(
    item: Judged, rules: BudgetTable, now: datetime, *, turn: int
) -> Iterator[WindowReport]:
    """Windows (tokens) that a call proves by what its provider said, and that are not known yet.

    turn: how many calls of its transaction come before it. Each has a moment of its own, for a word
    that is told after a proof stands against it. A call that began before the one that told what is
    known takes nobody's word back: history is imported late, and in any order.
    """
    known = rules.learned(item.model_key)
    for source, tokens in _told(item, known):
        yield WindowReport(
            key=item.model_key,
            source=source,
            tokens=tokens,
            seen_at=now + timedelta(microseconds=turn),
            call_id=item.capture.id or "",
            # A client's clock may run ahead; what it says of tomorrow is told now.
            told_at=min(item.started_at, now),
        )


def _told(
    item: Judged, known: Mapping[WindowSource, WindowReport]
) -> Iterator[tuple[WindowSource, int]]:
    if item.refused_window is not None and not _is_older(item, known.get(WindowSource.REFUSAL)):
        yield WindowSource.REFUSAL, item.refused_window
    server = item.capture.server_window
    if server is not None and not _is_known(known.get(WindowSource.SERVER), server):
        yield WindowSource.SERVER, server
    if item.is_proof and item.health.reason is not HealthReason.SUSPECTED_CUT:
        proof = known.get(WindowSource.SUCCESS)
        prompt = item.usage.prompt_tokens or 0
        is_news = proof is None or item.budget.disproved_by is None or prompt > proof.tokens
        if is_news and not _is_older(item, proof):
            yield WindowSource.SUCCESS, prompt if proof is None else max(prompt, proof.tokens)


def _is_older(item: Judged, known: WindowReport | None) -> bool:
    """Whether a call began before what is known was told."""
    moment = None if known is None else known.moment
    return moment is not None and item.started_at < moment


def _is_known(window: WindowReport | None, tokens: int) -> bool:
    return window is not None and window.tokens == tokens


def _store(
    project_id: int,
    taught: Iterable[tuple[str, WindowSource]],
    known: BudgetTable,
    now: datetime,
) -> None:
    """known: with what was taught. What it has no more of that was taken back in the same batch, or
    by a server that was set up anew."""
    told = [(key, source, known.learned(key).get(source)) for key, source in taught]
    stored.LearnedWindow.objects.bulk_create(
        [
            stored.LearnedWindow(
                project_id=project_id,
                model_key=window.key,
                source=window.source.value,
                tokens=window.tokens,
                seen_at=window.seen_at or now,
                call_name=window.call_id,
            )
            for _, _, window in told
            if window is not None
        ],
        update_conflicts=True,
        unique_fields=["project", "model_key", "source"],
        update_fields=["tokens", "seen_at", "call_name"],
    )
    changed = [
        key
        for key, source, _ in told
        if source is WindowSource.SERVER and WindowSource.REFUSAL not in known.learned(key)
    ]
    if changed:
        stored.LearnedWindow.objects.filter(
            project_id=project_id, model_key__in=changed, source=WindowSource.REFUSAL.value
        ).delete()
