"""Rows by many ids, in one parameter.

PostgreSQL reads and plans each of a list's numbers by itself: for 10,000 of them that takes ten
times as long as finding the rows. As an array they are one value, and the plan is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.db import connection
from django.db.models import Field, Lookup, Q
from django.db.models.fields.related import ForeignObject

# A few are as quick either way, and read as people write them.
_MANY: Final = 100


def one_of(field: str, ids: Sequence[int]) -> Q:
    """The rows whose field is one of these ids."""
    is_many = len(ids) > _MANY and connection.vendor == "postgresql"
    return Q((f"{field}__any_of" if is_many else f"{field}__in", list(ids)))


# A foreign key does not have the lookups of other fields.
@ForeignObject.register_lookup
@Field.register_lookup
class _AnyOf(Lookup):
    lookup_name = "any_of"
    prepare_rhs = False

    def as_sql(self, compiler: Any, connection: Any) -> Any:
        lhs, parameters = self.process_lhs(compiler, connection)
        return f"{lhs} = ANY(%s)", [*parameters, self.rhs]
