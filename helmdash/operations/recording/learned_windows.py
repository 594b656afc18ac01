"""What recorded calls teach about windows: refusals that name one, servers that say one, proofs.

Kept in the transaction that stores the calls, a row for each model and source
(core.budgets.learned_windows decides what counts). Most calls teach nothing, and cost a few
comparisons.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from helmdash.core.budgets.budget_table import BudgetTable
from helmdash.core.budgets.health import HealthReason
from helmdash.core.budgets.learned_windows import WindowReport, WindowSource
from helmdash.operations.recording.judging import Judged
from helmdash.records import models as stored


def keep_windows(
    *, project_id: int, items: Iterable[Judged], rules: BudgetTable, now: datetime
) -> None:
    """Store what these calls teach. Inside the transaction that stores them."""
    found: dict[tuple[str, WindowSource], WindowReport] = {}
    for item in items:
        for window in learned_from(item, rules, now):
            before = found.get((window.key, window.source))
            if before is None or _counts_more(window, before):
                found[window.key, window.source] = window
    if found:
        # In one order, so that two writers cannot wait for each other.
        _store(project_id, [found[pair] for pair in sorted(found)], rules, now)


def learned_from(item: Judged, rules: BudgetTable, now: datetime) -> Iterator[WindowReport]:
    """Windows (tokens) that a call proves by what its provider said, and that are not known yet."""
    known = rules.learned(item.model_key)
    for source, tokens in _told(item, known):
        yield WindowReport(
            key=item.model_key,
            source=source,
            tokens=tokens,
            seen_at=now,
            call_id=item.capture.id or "",
        )


def _told(
    item: Judged, known: Mapping[WindowSource, WindowReport]
) -> Iterator[tuple[WindowSource, int]]:
    if item.refused_window is not None:
        yield WindowSource.REFUSAL, item.refused_window
    server = item.capture.server_window
    if server is not None and not _is_known(known.get(WindowSource.SERVER), server):
        yield WindowSource.SERVER, server
    if item.is_proof and item.health.reason is not HealthReason.SUSPECTED_CUT:
        proof = known.get(WindowSource.SUCCESS)
        prompt = item.usage.prompt_tokens or 0
        if proof is None or item.budget.disproved_by is None or prompt > proof.tokens:
            yield WindowSource.SUCCESS, prompt if proof is None else max(prompt, proof.tokens)


def _is_known(window: WindowReport | None, tokens: int) -> bool:
    return window is not None and window.tokens == tokens


def _counts_more(window: WindowReport, before: WindowReport) -> bool:
    """Of one batch the later word counts, and of proofs the strongest."""
    return window.source is not WindowSource.SUCCESS or window.tokens > before.tokens


def _store(project_id: int, windows: list[WindowReport], rules: BudgetTable, now: datetime) -> None:
    stored.LearnedWindow.objects.bulk_create(
        [
            stored.LearnedWindow(
                project_id=project_id,
                model_key=window.key,
                source=window.source.value,
                tokens=window.tokens,
                seen_at=now,
                call_name=window.call_id,
            )
            for window in windows
        ],
        update_conflicts=True,
        unique_fields=["project", "model_key", "source"],
        update_fields=["tokens", "seen_at", "call_name"],
    )
    # A server that tells another window than before was set up anew: an older refusal is history.
    changed = [
        window.key
        for window in windows
        if window.source is WindowSource.SERVER
        and WindowSource.SERVER in rules.learned(window.key)
        and (window.key, WindowSource.REFUSAL) not in {(w.key, w.source) for w in windows}
    ]
    if changed:
        stored.LearnedWindow.objects.filter(
            project_id=project_id, model_key__in=changed, source=WindowSource.REFUSAL.value
        ).delete()
