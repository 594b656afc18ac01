"""Writing rows of rollups: what is new, what has changed, what has come to nothing."""

from __future__ import annotations

from collections.abc import Mapping

from helmdash.core.rollups.figures import Counts
from helmdash.records.models import Rollup
from helmdash.records.rollups.rollup_rows import COLUMN_OF, Slot, dump
from helmdash.records.statements.bulk import insert_rows, update_rows


def store_slots(project_id: int, ids: Mapping[Slot, int], figures: Mapping[Slot, Counts]) -> None:
    """Have the rows at these places hold these figures; no row where there are none.

    ids: of the rows that are there already.
    """
    fresh, changed, gone = [], [], []
    for slot, counts in figures.items():
        pk = ids.get(slot)
        if pk is None:
            if counts:
                fresh.append({"project_id": project_id, **slot._asdict(), **dump(counts)})
        elif counts:
            changed.append({"project_id": project_id, "id": pk, **dump(counts)})
        else:
            gone.append(pk)
    insert_rows(Rollup, fresh)
    update_rows(Rollup, ("figures", *COLUMN_OF.values()), changed, keys=("project_id", "id"))
    if gone:
        Rollup.objects.filter(project_id=project_id, id__in=gone).delete()
