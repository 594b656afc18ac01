"""The routing guide: the project's catalog, for agents that route by themselves."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from helmdash.queries.fitting import catalog as catalogs

POLICY = (
    "How to choose (helmdeck ADR 047). 1. Take the words of the intent: what goes in, what should "
    "come out, which verbs. 2. Look through `pipelines` first: one whose `accepts`, `produces` "
    "and `intent_keywords` match does the whole job. 3. A pipeline that `supersedes` packs is "
    "used instead of chaining those packs by hand. 4. Otherwise use one pack, or chain packs so "
    "that what one produces the next accepts. 5. Tell the user the `typical_use` of what you "
    "chose. 6. When nothing fits, say what is missing and propose a pack: the `limitations` of "
    "the nearest entries say where the catalog ends. Entries without metadata are found by their "
    "name and description only."
)
_NO_CATALOG = "This project has no current catalog; import one (POST /api/v1/catalogs/NAME)."
_EMPTY: tuple[object, ...] = ({}, None, "")


def read_guide(*, project_id: int, now: datetime) -> dict[str, object]:
    """{policy, fetched_at, packs, pipelines} of the project's current catalog; at most two
    queries. Empty metadata is left out."""
    found = catalogs.find(project_id=project_id)
    catalog = catalogs.body(revision_id=found.id) if found else {}
    guide: dict[str, object] = {
        "policy": POLICY,
        "fetched_at": now,
        "packs": [_entry(each) for each in catalog.get("packs") or ()],
        "pipelines": [_entry(each) for each in catalog.get("pipelines") or ()],
    }
    return guide if found else {**guide, "note": _NO_CATALOG}


def _entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    if entry.get("metadata") in _EMPTY:
        return {name: value for name, value in entry.items() if name != "metadata"}
    return dict(entry)
