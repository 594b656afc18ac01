"""How many conversations stand at each level, kept as sums of changes (ADR 32).

A count for each severity (core.budgets.levels), which conversations are indexed by.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import orjson

from helmdash.records.models import Conversation, RollupState, UncountedCalls
from helmdash.records.replica import connection_for

_STATE = RollupState._meta.db_table
_UNCOUNTED = UncountedCalls._meta.db_table
_CONVERSATIONS = Conversation._meta.db_table


def dump_levels(counts: Mapping[int, int]) -> str:
    """As counts are stored; of nothing none is."""
    told = {str(severity): counts[severity] for severity in sorted(counts) if counts[severity]}
    return orjson.dumps(told).decode()


def load_levels(text: str | None) -> Counter[int]:
    """What `dump_levels` wrote; nothing for None."""
    told = orjson.loads(text) if text else {}
    return Counter({int(severity): count for severity, count in told.items()})


def read_levels(project_id: int) -> Counter[int] | None:
    """How many conversations stand at each severity now; None: not counted yet. One statement, for
    a fold moves counts from the one table to the other."""
    found = _rows(
        f"SELECT 1, levels FROM {_STATE} WHERE project_id = %s"
        f" UNION ALL SELECT 0, levels FROM {_UNCOUNTED}"
        " WHERE project_id = %s AND levels IS NOT NULL",
        project_id,
    )
    total: Counter[int] = Counter()
    is_counted = False
    for is_state, text in found:
        is_counted = is_counted or bool(is_state and text)
        total.update(load_levels(text))
    return total if is_counted else None


def count_levels(project_id: int) -> Counter[int]:
    """The same from the conversations themselves, less what waits to be added: all at one
    moment."""
    total: Counter[int] = Counter()
    for severity, count, text in _rows(
        f"SELECT severity, COUNT(*), NULL FROM {_CONVERSATIONS} WHERE project_id = %s"
        f" GROUP BY severity UNION ALL SELECT NULL, NULL, levels FROM {_UNCOUNTED}"
        " WHERE project_id = %s AND levels IS NOT NULL",
        project_id,
    ):
        if text is None:
            total[severity] += count
        else:
            total.subtract(load_levels(text))
    return total


def _rows(statement: str, project_id: int) -> list[tuple[Any, ...]]:
    with connection_for(RollupState).cursor() as cursor:
        cursor.execute(statement, [project_id, project_id])
        return list(cursor.fetchall())
