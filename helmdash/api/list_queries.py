"""The query `q` of lists: the same that the bars of the pages take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from helmdash.api.problems import invalid_field
from helmdash.core.text.query_terms import BadQuery, Field, parse_query


def narrowing(query: Mapping[str, Any], fields: Sequence[Field]) -> dict[str, Any]:
    """What `q` asks for, as filters have it: `q`, the words to search for, and `terms`. Raises
    Problem: 422 naming the term that cannot be read."""
    try:
        asked = parse_query(query.get("q") or "", fields)
    except BadQuery as error:
        raise invalid_field("q", str(error)) from None
    return {"q": asked.words or None, "terms": asked.terms or None}
