"""Calls as they are exported, and how far behind each exporter is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Exists, Min, Q, QuerySet, Sum

from helmdash.core.telemetry.judged import JudgedCall
from helmdash.queries.calls.calls import view
from helmdash.records.call_names import Place, calls_at
from helmdash.records.models import Exporter, PendingExport, Project


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportState:
    """One exporter. waiting: calls that it has still to take; since: when the oldest of these was
    recorded; None: none waits. project None: it gets every project's."""

    id: int
    name: str
    project: str | None
    enabled: bool
    exported: int
    refused: int
    exported_at: datetime | None
    failures: int
    problem: str
    waiting: int
    since: datetime | None

    def lag_s(self, now: datetime) -> float:
        """Seconds that the oldest call has waited; 0 where none does."""
        return max((now - self.since).total_seconds(), 0.0) if self.since else 0.0


def export_states(*, told_to: int | None = None) -> tuple[ExportState, ...]:
    """Every exporter by its name. Two queries.

    told_to: the primary key of a project whose readers ask; None: who asks administers all.
    """
    waiting: dict[int, Mapping[str, object]] = {
        each["exporter_id"]: each
        for each in PendingExport.objects.values("exporter_id")
        .annotate(calls=Sum("count"), since=Min("at"))
        .order_by()
    }
    found = Exporter.objects.all() if told_to is None else exporters_told_to(told_to)
    rows = found.select_related("project").order_by("name")
    return tuple(_state(row, waiting.get(row.pk, {})) for row in rows)


def exporters_told_to(project_id: int) -> QuerySet[Exporter]:
    """Those that readers of a project may know of: its own; of the default project also those that
    get every project's calls, for how far they are behind tells of the other projects."""
    is_default = Project.objects.filter(pk=project_id, is_default=True)
    return Exporter.objects.filter(
        Q(project_id=project_id) | Q(project__isnull=True) & Exists(is_default)
    )


def judged_calls(*, project_id: int, places: Iterable[Place]) -> dict[Place, JudgedCall]:
    """Those of these calls that are still there, by time, each with where it lies. Two queries."""
    slug = Project.objects.values_list("slug", flat=True).get(pk=project_id)
    rows = calls_at(project_id, places).select_related("conversation")
    found = {}
    for row in rows.order_by("started_at", "id"):
        call = view(row)
        found[Place(row.pk, row.started_at)] = JudgedCall(
            id=call.id,
            project=slug,
            model=call.model,
            upstream_model=call.upstream_model,
            provider=call.provider,
            conversation=call.conversation,
            purpose=call.purpose,
            lane=call.lane.value,
            client=call.client.name if call.client else None,
            round_number=call.round_number,
            generation=call.generation,
            usage=call.usage,
            health=call.health,
            finish_reason=call.finish_reason.value if call.finish_reason else None,
            status=call.status,
            cause=call.cause.name.value if call.cause else None,
            cause_rule=call.cause.rule if call.cause else None,
            cause_detail=call.cause.detail if call.cause else None,
            trim_before_bytes=call.trim.before_bytes if call.trim else None,
            trim_after_bytes=call.trim.after_bytes if call.trim else None,
            is_compacted=(call.placed_by or "").endswith("compaction"),
            started_at=call.started_at,
            latency_ms=call.latency_ms,
            ttft_ms=call.ttft_ms,
        )
    return found


def _state(row: Exporter, waiting: Mapping[str, object]) -> ExportState:
    calls, since = waiting.get("calls"), waiting.get("since")
    return ExportState(
        id=row.pk,
        name=row.name,
        project=row.project.slug if row.project else None,
        enabled=row.enabled,
        exported=row.exported,
        refused=row.refused,
        exported_at=row.exported_at,
        failures=row.failures,
        problem=row.latest_problem,
        waiting=calls if isinstance(calls, int) else 0,
        since=since if isinstance(since, datetime) else None,
    )
