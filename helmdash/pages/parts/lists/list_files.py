"""Lists as files: NDJSON as the API has its items, and CSV for spreadsheets."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import StringIO
from typing import Any, Final, Protocol

from helmdash.answers import to_json
from helmdash.core.text.formulas import defused
from helmdash.doors.bodies.jsontext import dump_json
from helmdash.pages.parts.lists.list_columns import LIST_COLUMNS

# The columns of each list, by where their values are in the item's JSON: what fills a row of a
# table. All else, such as what fills a prompt and a Trim's entries, is in the NDJSON.
COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "calls": (
        *("id", "started_at", "conversation", "round", "generation", "lane", "attempt"),
        *("model", "model_key", "upstream_model", "provider", "client.name", "client.version"),
        *("pack", "purpose", "prompt_variant", "correlation_id", "caller", "status"),
        *("http_status", "finish_reason", "cause.name", "cause.detail", "error_message"),
        *("health.level", "health.reason", "health.limit_tokens", "health.limit_source"),
        *("usage.prompt_tokens", "usage.completion_tokens", "usage.cached_tokens"),
        *("usage.cache_write_tokens", "usage.reasoning_tokens", "estimate_tokens"),
        *("latency_ms", "ttft_ms", "overhead_ms", "sent.bytes", "sent.messages"),
        *("trim.before_bytes", "trim.after_bytes", "fit_id", "recorded_at"),
    ),
    "conversations": (
        *("id", "parent", "started_at", "latest_at", "model", "model_key", "client.name"),
        *("client.version", "client_window", "round", "generation", "health.level"),
        *("health.reason", "health.prompt_tokens", "health.limit_tokens"),
        *("health.limit_source", "known_level", "attention", "counts.calls"),
        *(
            "counts.side_calls",
            "counts.earlier_attempts",
            "counts.rounds",
            "counts.failures",
            "counts.trims",
        ),
    ),
    "plans": (
        *("id", "at", "kind", "intent", "intent_sha", "model", "prompt_variant", "complexity"),
        *("outcome", "cause", "steps", "gaps", "tools", "latency_ms", "before_bytes"),
        *("after_bytes", "caller", "more_steps_likely", "followed"),
    ),
    "trims": (
        *("id", "created_at", "model", "intent", "catalog_name", "catalog_digest"),
        *("before_bytes", "after_bytes", "fits", "caller", "trim.dropped"),
    ),
}


def ndjson(noun: str, items: Iterable[object], chosen: Sequence[str] = ()) -> Iterator[bytes]:
    """One item as JSON on each line, with the members that the API gives; where columns were
    chosen, with those of them."""
    paths = [name.split(".") for name in _paths(noun, chosen)] if chosen else None
    for item in items:
        yield dump_json(item if paths is None else _part(to_json(item), paths)) + b"\n"


def csv_rows(noun: str, items: Iterable[object], chosen: Sequence[str] = ()) -> Iterator[bytes]:
    """Rows of RFC 4180 in UTF-8, the heads first. No text is a formula; what is not known is
    empty."""
    heads = _paths(noun, chosen)
    columns = tuple(name.split(".") for name in heads)
    yield _row(heads)
    for item in items:
        found = to_json(item)
        yield _row(_cell(found, path) for path in columns)


class Writer(Protocol):
    """How a kind of file is written. chosen: names of columns; none: all there are."""

    def __call__(
        self, noun: str, items: Iterable[object], chosen: Sequence[str] = ()
    ) -> Iterator[bytes]: ...


# By the ending of the file: its media type, and how it is written.
KINDS: Final[Mapping[str, tuple[str, Writer]]] = {
    "csv": ("text/csv; charset=utf-8", csv_rows),
    "ndjson": ("application/x-ndjson", ndjson),
}


def _paths(noun: str, chosen: Sequence[str]) -> tuple[str, ...]:
    return LIST_COLUMNS[noun].paths(chosen) if chosen else COLUMNS[noun]


def _part(item: Any, paths: Iterable[Sequence[str]]) -> dict[str, Any]:
    """The members of an item that paths lead to, laid out as in the whole of it."""
    part: dict[str, Any] = {}
    for *above, name in paths:
        into, found = part, item
        for each in above:
            found = found.get(each) if isinstance(found, Mapping) else None
            if found is None:
                into.setdefault(each, None)
                break
            into = into.setdefault(each, {})
        if isinstance(found, Mapping):
            into[name] = found.get(name)
    return part


def _cell(value: Any, path: Iterable[str]) -> object:
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    if isinstance(value, list):
        value = " ".join(map(str, value))
    return defused(value)


def _row(cells: Iterable[object]) -> bytes:
    line = StringIO()
    csv.writer(line).writerow(cells)
    # A lone half of a surrogate pair has no UTF-8.
    return line.getvalue().encode(errors="replace")
