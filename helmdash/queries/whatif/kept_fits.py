"""What is kept of a fit to make it again: its inputs, its intent, and its catalog."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

from helmdash.core.catalog.catalog import parse_catalog
from helmdash.core.fitting.inputs import read_inputs
from helmdash.core.fitting.prepared import PreparedCatalog, prepare
from helmdash.core.whatif.fits import NotReplayable, RecordedFit
from helmdash.queries.fitting import catalog as catalogs
from helmdash.records.models import CatalogRevision, Fit, PlanCatalog

# Fits of one day use a handful of catalogs. One that is ready to be fitted takes several times its
# JSON in memory, which may be 8 MiB: of such ones two are kept.
_PREPARED: Final = 8
_PREPARED_BYTES: Final = 16 * 2**20


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
    return _kept.get((row.project_id, row.catalog_name, row.catalog_digest))


def forget_catalogs() -> None:
    """Drop those in memory, which may be megabytes."""
    _kept.forget()


_Key = tuple[int, str, str]


class KeptCatalogs:
    """The catalogs that were asked for last, as many as memory is meant for; of any thread.

    prepared: finds one that is not in memory.
    """

    def __init__(
        self, prepared: Callable[[_Key], PreparedCatalog | None], *, most: int, most_bytes: int
    ) -> None:
        self._prepared = prepared
        self._most, self._most_bytes = most, most_bytes
        self._lock = threading.Lock()
        self._found: OrderedDict[_Key, PreparedCatalog | None] = OrderedDict()

    def get(self, key: _Key) -> PreparedCatalog | None:
        """The catalog, found where it is not in memory."""
        with self._lock:
            if key in self._found:
                self._found.move_to_end(key)
                return self._found[key]
        found = self._prepared(key)
        with self._lock:
            self._found[key] = found
            # The one that is being fitted stays, however large.
            while len(self._found) > 1 and self._is_too_much():
                self._found.popitem(last=False)
        return found

    def forget(self) -> None:
        """Drop all of them."""
        with self._lock:
            self._found.clear()

    @property
    def bytes(self) -> int:
        """Of all that are kept, as compact JSON."""
        return sum(each.totals[0] for each in self._found.values() if each is not None)

    def _is_too_much(self) -> bool:
        return len(self._found) > self._most or self.bytes > self._most_bytes


def _prepared(key: _Key) -> PreparedCatalog | None:
    project_id, name, digest = key
    if name:
        rows = CatalogRevision.objects.filter(project_id=project_id, name=name, digest=digest)
        revision_id = rows.order_by("-number").values_list("id", flat=True).first()
        # Not by the memory of live fits: old revisions would drive today's out of it.
        return _made(catalogs.body(revision_id=revision_id)) if revision_id else None
    stored = PlanCatalog.objects.filter(project_id=project_id, digest=digest)
    body = stored.values_list("body", flat=True).first()
    # What could not be stored as it was is another catalog.
    if body is None or hashlib.sha256(body.encode()).hexdigest() != digest:
        return None
    return _made(json.loads(body))


def _made(body: Any) -> PreparedCatalog:
    return prepare(parse_catalog(body))


_kept: Final = KeptCatalogs(_prepared, most=_PREPARED, most_bytes=_PREPARED_BYTES)
