"""The schema of a decode request: what it accepts, and what is wrong with it as a problem."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from helmdash.api.problems import Problem, invalid_field
from helmdash.core.decoding.decoding import Accepts
from helmdash.operations import json_schema


def acceptor(schema: Mapping[str, Any] | None) -> Accepts | None:
    """A function that tells whether a value satisfies the schema; None when there is none.

    Made for one reply. It, and what it returns, raise Problem naming `schema` for one that cannot
    be used (see helmdash.operations.json_schema).
    """
    try:
        check = json_schema.acceptor(schema)
    except json_schema.BadSchema as error:
        raise _bad(error) from None
    if check is None:
        return None

    def accepts(value: object) -> bool:
        try:
            return check(value)
        except json_schema.BadSchema as error:
            raise _bad(error) from None

    return accepts


def _bad(error: json_schema.BadSchema) -> Problem:
    return invalid_field("schema", str(error))
