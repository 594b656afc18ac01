"""What is kept of a fit to make it again: its inputs, its intent, and its catalog."""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from typing import Final

from helmdash.core.catalog.catalog import parse_catalog
from helmdash.core.fitting.inputs import read_inputs
from helmdash.core.fitting.prepared import PreparedCatalog, prepare
from helmdash.core.whatif.fits import NotReplayable, RecordedFit
from helmdash.queries import catalog as catalogs
from helmdash.records.models import CatalogRevision, Fit, PlanCatalog

# A catalog of a thousand entries takes a few megabytes when it is ready to be fitted; fits of one
# day use a handful.
_PREPARED: Final = 8


def recorded_fit(row: Fit) -> RecordedFit | NotReplayable:
    """What a fit was made of, or why it cannot be made again."""
    inputs = read_inputs(row.inputs)
    if inputs is None:
        return NotReplayable.NO_INPUTS if row.intent else NotReplayable.NO_INTENT
    if not row.intent:
        return NotReplayable.NO_INTENT
    return RecordedFit(intent=row.intent, inputs=inputs, receipt=row.trim)


def catalog_of(row: Fit) -> PreparedCatalog | None:
    """The very catalog of a fit, ready to be fitted; None: it is not kept any more. Two queries, or
    one, for a catalog that is not in memory."""
    return _prepared(row.project_id, row.catalog_name, row.catalog_digest)


def forget_catalogs() -> None:
    """Drop those in memory, which may be megabytes."""
    _prepared.cache_clear()


@lru_cache(maxsize=_PREPARED)
def _prepared(project_id: int, name: str, digest: str) -> PreparedCatalog | None:
    if name:
        rows = CatalogRevision.objects.filter(project_id=project_id, name=name, digest=digest)
        revision = rows.defer("body").order_by("-number").first()
        return catalogs.prepared(revision=catalogs.info(revision)) if revision else None
    stored = PlanCatalog.objects.filter(project_id=project_id, digest=digest)
    body = stored.values_list("body", flat=True).first()
    # What could not be stored as it was is another catalog.
    if body is None or hashlib.sha256(body.encode()).hexdigest() != digest:
        return None
    return prepare(parse_catalog(json.loads(body)))
