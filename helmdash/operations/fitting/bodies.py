"""Catalogs that were shown to a model or sent with a fit, kept once for each content."""

from __future__ import annotations

from datetime import datetime

from helmdash.operations.retention.expired import CATALOG_SEEN_PRECISION
from helmdash.records.models import PlanCatalog
from helmdash.records.statements.column_values import storable


def keep_body(*, project_id: int, digest: str, body: str, now: datetime) -> None:
    """Store the compact JSON of a catalog under its SHA-256, or note that it is still in use."""
    stored = PlanCatalog.objects.filter(project_id=project_id, digest=digest)
    seen = stored.values_list("latest_used_at", flat=True).first()
    if seen is None:
        PlanCatalog.objects.get_or_create(
            project_id=project_id,
            digest=digest,
            defaults={"body": storable(body), "latest_used_at": now},
        )
    elif now - seen > CATALOG_SEEN_PRECISION:
        stored.update(latest_used_at=now)
