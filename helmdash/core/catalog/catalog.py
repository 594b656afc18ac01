"""The catalog: the packs and pipelines of a caller, as a model would read them.

Source: the RoutingGuide of helmdeck ADR 050 (packs with a name, pipelines with an id and a name).
What makes an entry usable (its name or id, unambiguous) is checked strictly. Everything else
is carried untouched: a description or metadata of an odd type is detail we do not understand,
never a reason to fail. Nothing here changes the object it was given.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from helmdash.core.text.jsontext import TooDeep, write_json


class EntryKind(StrEnum):
    """The two kinds of entries a catalog holds."""

    PACK = "pack"
    PIPELINE = "pipeline"


# How each kind of entry is listed in a catalog, in the RoutingGuide's order.
LIST_OF_KIND: Final[Mapping[EntryKind, str]] = {
    EntryKind.PACK: "packs",
    EntryKind.PIPELINE: "pipelines",
}


# Of one catalog are told; whoever has more mends these first.
_MOST_FAULTS: Final = 50
_SHOWN_CHARS: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldError:
    """One thing wrong with a catalog: where (a dotted path) and what to do about it."""

    field: str
    message: str


class CatalogError(ValueError):
    """The catalog cannot be used: an entry without a name, or two that cannot be told apart."""

    def __init__(self, errors: tuple[FieldError, ...]) -> None:
        super().__init__("; ".join(f"{error.field}: {error.message}" for error in errors))
        self.errors = errors


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogEntry:
    """One pack or pipeline. `id` is what a plan calls it by: a pack's name, a pipeline's id."""

    kind: EntryKind
    id: str
    name: str
    raw: Mapping[str, object]

    @property
    def description(self) -> str:
        """The description, "" when it is missing or not text."""
        return _text(self.raw.get("description"))

    @property
    def metadata(self) -> Mapping[str, object]:
        """The metadata object, empty when it is missing or not an object."""
        found = self.raw.get("metadata")
        return found if isinstance(found, Mapping) else {}

    def metadata_texts(self, member: str) -> tuple[str, ...]:
        """The strings of a metadata list; a lone string counts as a list of one."""
        return _texts(self.metadata.get(member))

    def metadata_text(self, member: str) -> str:
        """A metadata text such as `typical_use`, "" when it is missing or not text."""
        return _text(self.metadata.get(member))

    @property
    def supersedes(self) -> tuple[str, ...]:
        """The packs this entry stands in for, wherever the author wrote them."""
        return self.metadata_texts("supersedes") + _texts(self.raw.get("supersedes"))

    @property
    def step_packs(self) -> tuple[str, ...]:
        """The packs that the steps of a pipeline call, in order."""
        steps = self.metadata.get("steps")
        if not isinstance(steps, list):
            steps = self.raw.get("steps")
        if not isinstance(steps, list):
            return ()
        packs = (_text(step.get("pack")) for step in steps if isinstance(step, Mapping))
        return tuple(pack for pack in packs if pack)


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """All entries, packs before pipelines, each in the order given; and the object given."""

    entries: tuple[CatalogEntry, ...]
    raw: Mapping[str, object]


def parse_catalog(value: object) -> Catalog:
    """Read a catalog and check that every entry can be named without doubt.

    Names and ids compare exactly as given, across both kinds, since a plan calls either by
    one string. Two pipelines may share a display name, never an id. Raises CatalogError with
    the first faults found, each with its path ("catalog.packs.3.name").
    """
    if not isinstance(value, Mapping):
        raise CatalogError((_error("catalog", 'must be an object with "packs" and "pipelines"'),))
    _require_json(value)
    faults: list[FieldError] = []
    entries = tuple(_read_entries(value, faults))
    if faults:
        raise CatalogError(tuple(faults[:_MOST_FAULTS]))
    return Catalog(entries=entries, raw=value)


def _read_entries(value: Mapping[str, object], faults: list[FieldError]) -> Iterator[CatalogEntry]:
    seen: dict[str, str] = {}
    for kind, member in LIST_OF_KIND.items():
        items = value.get(member)
        if items is None:  # absent, or the null that Go clients send for an empty list
            continue
        if not isinstance(items, list):
            faults.append(_error(f"catalog.{member}", "must be a list"))
            continue
        for position, item in enumerate(items):
            entry = _read_entry(kind, item, f"catalog.{member}.{position}", faults)
            if entry is not None and _is_new(entry, f"{member}.{position}", seen, faults):
                yield entry
            if len(faults) >= _MOST_FAULTS:
                return


def _read_entry(
    kind: EntryKind, item: object, path: str, faults: list[FieldError]
) -> CatalogEntry | None:
    if not isinstance(item, Mapping):
        faults.append(_error(path, f"must be an object that describes a {kind}"))
        return None
    members = ("name",) if kind is EntryKind.PACK else ("id", "name")
    missing = [member for member in members if not _text(item.get(member)).strip()]
    faults.extend(_error(f"{path}.{member}", "must be a non-blank string") for member in missing)
    if missing:
        return None
    return CatalogEntry(kind=kind, id=str(item[members[0]]), name=str(item["name"]), raw=item)


def _is_new(
    entry: CatalogEntry, place: str, seen: dict[str, str], faults: list[FieldError]
) -> bool:
    first = seen.setdefault(entry.id, place)
    if first == place:
        return True
    member = "name" if entry.kind is EntryKind.PACK else "id"
    shown = json.dumps(entry.id[:_SHOWN_CHARS], ensure_ascii=False)
    faults.append(
        _error(
            f"catalog.{place}.{member}",
            f"{shown} is already used by {first}; names and ids must be unique over the "
            "whole catalog",
        )
    )
    return False


def _require_json(value: Mapping[str, object]) -> None:
    """Sizes are counted on UTF-8 JSON, so what has no such form (NaN, half an emoji) is refused."""
    try:
        write_json(value, is_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        message = "holds half of a surrogate pair, which is not text; send valid Unicode"
    except TooDeep:
        message = "is nested too deeply"
    except (TypeError, ValueError):
        message = "holds a value that JSON cannot carry, such as NaN or Infinity"
    else:
        return
    raise CatalogError((_error("catalog", message),))


def _error(field: str, message: str) -> FieldError:
    return FieldError(field=field, message=message)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,) if value else ()
    if not isinstance(value, list):
        return ()
    return tuple(item for item in value if isinstance(item, str) and item)
