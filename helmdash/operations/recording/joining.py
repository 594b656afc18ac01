"""Calls that came by another door before: found by any of their names, and completed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from helmdash.core.calls.joining import (
    COLUMNS,
    is_about_then,
    joined,
    likenesses,
    may_join,
    session_name,
)
from helmdash.core.rollups.figures import Change
from helmdash.operations.recording.conversation_batch import ConversationBatch
from helmdash.operations.recording.conversation_rows import ConversationRow
from helmdash.operations.recording.judged.judging import Judged
from helmdash.records.call_names import Place, add_names, calls_at
from helmdash.records.models import Call, CallPayload
from helmdash.records.rollups.call_facts import facts_of_row
from helmdash.records.statements.bulk import insert_rows, update_rows

Answer = TypeVar("Answer")
Row = dict[str, Any]


@dataclass(slots=True, kw_only=True)
class KnownCall(Generic[Answer]):
    """A call that is stored, or that this transaction stores. row: as it is about to be inserted;
    None: it is stored, at `place`."""

    answer: Answer
    routes: str | None
    started_at: datetime
    place: Place | None = None
    row: Row | None = None


def names_of(item: Judged) -> Iterator[str]:
    """All names that a call may be known by, its own first."""
    yield item.capture.id or ""
    yield from item.capture.also_known
    yield from item.capture.inside
    for likeness in likenesses(item.capture, item.usage, item.started_at):
        yield from likeness.places


class KnownCalls(Generic[Answer]):
    """The calls that a transaction may meet again, by their names."""

    def __init__(self, stored: Mapping[str, KnownCall[Answer]]) -> None:
        self._known = dict(stored)
        self._further: list[tuple[str, Row]] = []

    @property
    def has_none(self) -> bool:
        """Whether no call is known yet."""
        return not self._known

    def find(self, item: Judged) -> KnownCall[Answer] | None:
        """The call that an item tells of again: by its id, else by what other doors know of it."""
        capture = item.capture
        same = self._known.get(capture.id or "")
        if same is not None:
            return same
        for name in capture.also_known:
            known = self._known.get(name)
            if known is not None and may_join(known.routes, capture.routes):
                return known
        for likeness in likenesses(capture, item.usage, item.started_at):
            for name in likeness.places:
                known = self._known.get(name)
                if (
                    known is not None
                    and may_join(known.routes, capture.routes)
                    and is_about_then(known.started_at, item.started_at)
                ):
                    return known
        return None

    def add(self, item: Judged, answer: Answer, row: Row) -> None:
        """A call that this transaction stores."""
        known = KnownCall(answer=answer, routes=row["routes"], started_at=item.started_at, row=row)
        self._known[item.capture.id or ""] = known
        # Names without a conversation would outlive their call; retention looks for these.
        if row["conversation_id"] is not None:
            self._name(item, known, row)
        if item.capture.inside:
            self._take(item.capture.inside, known, row)

    def add_names(self, item: Judged, known: KnownCall[Answer], row: Row) -> None:
        """The names that a second telling adds. row: the call's."""
        if row["conversation_id"] is None:
            return
        name = item.capture.id or ""
        if name not in self._known:
            self._known[name] = known
            self._further.append((name, row))
        self._name(item, known, row)
        session = session_name(item.capture)
        self._take([session] if session is not None else [], known, row)
        self._take(item.capture.inside, known, row)

    def write(self) -> None:
        """Store the further names, once the calls have their numbers."""
        add_names(self._further)

    def _name(self, item: Judged, known: KnownCall[Answer], row: Row) -> None:
        alike = likenesses(item.capture, item.usage, item.started_at)
        if not (alike or item.capture.also_known):
            return
        names = [*item.capture.also_known]
        for likeness in alike:
            is_named = any(self._known.get(name) is known for name in likeness.names)
            free = next((name for name in likeness.names if name not in self._known), None)
            if free is not None and not is_named:
                names.append(free)
        self._take(names, known, row)

    def _take(self, names: Iterable[str], known: KnownCall[Answer], row: Row) -> None:
        """Names that are free lead to the call."""
        for name in names:
            if name not in self._known:
                self._known[name] = known
                self._further.append((name, row))


class Joining(Generic[Answer]):
    """What second tellings change about calls, in one transaction."""

    def __init__(self, project_id: int, known: KnownCalls[Answer]) -> None:
        self._project_id = project_id
        self._known = known
        self._told: list[tuple[KnownCall[Answer], Judged, Row, bool]] = []
        # Stored calls that are others now, by the attributes of their rows.
        self.completed: list[Row] = []

    def take(self, known: KnownCall[Answer], item: Judged, row: Row) -> None:
        """A second telling of a call. row: the one that it alone would have made."""
        if may_join(known.routes, item.capture.routes):
            self._told.append((known, item, row, False))
            # Of several by one door the first counts.
            known.routes = f"{known.routes} {row['routes']}"

    def take_later(self, known: KnownCall[Answer], item: Judged, row: Row) -> None:
        """The same door knows more of a call than when it was recorded, and is believed."""
        self._told.append((known, item, row, True))

    def apply(
        self,
        conversations: Mapping[int, ConversationRow],
        standings: ConversationBatch,
    ) -> list[Change]:
        """Complete the calls; gives what stored ones were, and are now.

        conversations: those that this transaction holds locked, by id.
        """
        if not self._told:
            return []
        stored = self._locked()
        before: dict[int, Row] = {}
        changed: dict[int, Row] = {}
        for known, item, told, is_later in self._told:
            row = known.row if known.place is None else stored.get(known.place.call_id)
            if row is None or not (is_later or may_join(row["routes"], item.capture.routes)):
                continue  # gone, or another process was first
            changes = joined(row, told, is_believed=is_later)
            if known.place is not None:
                before.setdefault(row["id"], dict(row))
                changed[row["id"]] = row
            row.update(changes)
            self._known.add_names(item, known, row)
            conversation = conversations.get(row["conversation_id"] or 0)
            if "prompt_tokens" in changes and conversation is not None:
                is_stored, number = known.place is not None, row["generation"]
                standings.correct(conversation, item, generation=number, is_stored=is_stored)
            if "prompt_tokens" in changes and known.place is not None:
                self._keep_usage(row, item)
        keys = ("project_id", "started_at", "id")
        self.completed = list(changed.values())
        update_rows(Call, COLUMNS, self.completed, keys=keys)
        return [(facts_of_row(before[pk]), facts_of_row(row)) for pk, row in changed.items()]

    def _locked(self) -> dict[int, Row]:
        """The stored rows, locked in one order."""
        places = [known.place for known, *_ in self._told if known.place is not None]
        rows = calls_at(self._project_id, places).select_for_update().order_by("id")
        return {row["id"]: dict(row) for row in rows.values()}

    def _keep_usage(self, row: Row, item: Judged) -> None:
        """What the stronger door says of the tokens, or the only one that does."""
        if item.capture.usage is None:
            return
        usage = dict(item.capture.usage)
        place = {key: row[key] for key in ("project_id", "started_at")} | {"call_id": row["id"]}
        if not CallPayload.objects.filter(**place).update(usage_raw=usage):
            insert_rows(CallPayload, [{**place, "usage_raw": usage}])
