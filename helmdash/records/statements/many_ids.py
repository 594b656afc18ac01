"""Rows by many ids, in one parameter.

PostgreSQL reads and plans each of a list's numbers by itself, and Django makes a parameter of each:
for 10,000 of them either takes ten times as long as finding the rows. As an array, or as JSON on
SQLite, they are one value, and the plan is the same.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from django.db.models import Field, Lookup, Q
from django.db.models.fields.related import ForeignObject

# A few are as quick either way, and read as people write them.
_MANY: Final = 100


def one_of(field: str, ids: Sequence[int]) -> Q:
    """The rows whose field is one of these ids."""
    return Q((f"{field}__any_of" if len(ids) > _MANY else f"{field}__in", list(ids)))


# A foreign key does not have the lookups of other fields.
@ForeignObject.register_lookup
@Field.register_lookup
class _AnyOf(Lookup):
    lookup_name = "any_of"
    prepare_rhs = False

    def as_sql(self, compiler: Any, connection: Any) -> Any:
        lhs, parameters = self.process_lhs(compiler, connection)
        return f"{lhs} = ANY(%s)", [*parameters, self.rhs]

    def as_sqlite(self, compiler: Any, connection: Any) -> Any:
        lhs, parameters = self.process_lhs(compiler, connection)
        return f"{lhs} IN (SELECT value FROM json_each(%s))", [*parameters, json.dumps(self.rhs)]
