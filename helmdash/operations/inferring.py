"""Finding the conversation of calls that name none, with what the database knows.

Calls of one batch are placed one after the other, each knowing what those before it left, so that
a batch gives the same places as its calls one by one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from hashlib import blake2b

from django.db import connection

from helmdash.core.conversations.chains import (
    CHAIN_VERSION,
    ChainLinks,
    Placing,
    Seen,
    Size,
    is_fresh_start,
    marks_of,
    place,
)
from helmdash.core.conversations.first_retries import (
    FIRST_RETRY_VERSION,
    failed_mark,
    is_same_again,
)
from helmdash.operations.conversation_rows import (
    ConversationIds,
    ConversationRow,
    lock_by_id,
    make_row,
)
from helmdash.operations.judging import Judged
from helmdash.records.marks import (
    MOST_SEEN,
    SeenMark,
    find_marks,
    forget_marks,
    leave_marks,
)
from helmdash.records.models import Call

# How far back a branch is recognized as one: so many calls. Old marks go when the count passes a
# multiple of the second number, for a statement with every call would cost more than they do.
KEPT_GENERATIONS = 64
_FORGOTTEN_EVERY = 32
# Between reading marks and locking their conversations another writer may have moved them.
_LOOKS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Inferred:
    """Where a call belongs. `branched_from`: name and generation of what it came off."""

    row: ConversationRow
    placed_by: str
    opened_by: str = ""
    branched_from: tuple[str, int] | None = None


class Inference:
    """The conversations of those calls of a batch that name none. Inside the transaction."""

    def __init__(
        self,
        project_id: int,
        items: Sequence[Judged],
        *,
        named: Iterable[ConversationRow],
        ids: ConversationIds,
    ) -> None:
        self._project_id = project_id
        self._ids = ids
        # A client may also name a conversation that was inferred: one row, two ways to it.
        self._named = {row.id: row for row in named}
        self._marks: dict[str, dict[int, int]] = {}  # mark -> conversation -> generation
        self._newest: dict[int, int] = {}  # of conversations that cannot be gone on with
        self._names: dict[int, str] = {}
        self._rows: dict[int, ConversationRow] = {}
        self._retried: set[str] = set()
        self._left: dict[tuple[int, str], int] = {}
        self._grown: dict[int, int] = {}  # conversation -> generation before this batch
        self._sizes: dict[int, Size] = {}  # of the newest calls in this batch
        self._ends: dict[int, tuple[datetime, int | None]] = {}  # began at, took milliseconds
        if items:
            self._learn(items)

    def place(self, item: Judged, links: ChainLinks) -> Inferred:
        """The conversation of the next call, made where it is new."""
        caller = _caller_tag(item.caller)
        found = place(links, lambda mark: self._seen(mark + caller))
        how = f"{CHAIN_VERSION} {found.placing}"
        if found.conversation is None:
            failed = self._failed_before(item, links)
            if failed is not None:
                return Inferred(row=failed, placed_by=FIRST_RETRY_VERSION)
            return Inferred(row=self._make(item), placed_by=how)
        if found.placing is Placing.BRANCH:
            source = (self._names[found.conversation], found.generation or 0)
            return Inferred(row=self._make(item), placed_by=how, branched_from=source)
        row = self._rows[found.conversation]
        if found.placing is not Placing.COMPACTION:
            return Inferred(row=row, placed_by=how)
        if found.by_run and not is_fresh_start(self._newest_size(row), _size(item)):
            return Inferred(row=row, placed_by=f"{CHAIN_VERSION} {Placing.CONTINUE}")
        return Inferred(row=row, placed_by=how, opened_by=Placing.COMPACTION.value)

    def leave(self, row: ConversationRow, item: Judged, links: ChainLinks) -> None:
        """Note the marks of a call that its conversation has just taken in."""
        caller = _caller_tag(item.caller)
        self._grown.setdefault(row.id, row.generation - 1)
        self._sizes[row.id] = _size(item)
        self._ends[row.id] = (item.started_at, item.capture.latency_ms)
        failed = failed_mark(links.head) if _is_failed_first(item, links) else ""
        for mark in filter(None, (*marks_of(links, row.generation), failed)):
            self._marks.setdefault(mark + caller, {})[row.id] = row.generation
            self._left[row.id, mark + caller] = row.generation

    def _failed_before(self, item: Judged, links: ChainLinks) -> ConversationRow | None:
        """The conversation of this very request, if its only call so far has failed before it."""
        if links.prefixes or not links.head:
            return None
        for seen in self._seen(failed_mark(links.head) + _caller_tag(item.caller)):
            row = self._rows.get(seen.conversation) if seen.is_tip else None
            if row is None or row.model_key != item.model_key:
                continue
            failed_at, failed_ms = self._end_of(row)
            if is_same_again(
                failed=self._newest_size(row),
                failed_at=failed_at,
                failed_ms=failed_ms,
                again=_size(item),
                again_at=item.started_at,
            ):
                return row
        return None

    def _end_of(self, row: ConversationRow) -> tuple[datetime, int | None]:
        """When the conversation's newest call began, and the milliseconds it took."""
        known = self._ends.get(row.id)
        if known is not None:
            return known
        stored = Call.objects.filter(
            project_id=self._project_id, conversation_id=row.id, generation=row.generation
        )
        found = stored.values_list("started_at", "latency_ms").first()
        return found if found is not None else (row.latest_at, None)

    def write(self, now: datetime) -> None:
        """Write the marks of the batch, after its conversations."""
        fresh: list[dict[str, object]] = []
        repeated: list[dict[str, object]] = []
        for (pk, mark), generation in self._left.items():
            is_new = self._rows[pk].is_new
            (fresh if is_new else repeated).append(
                {
                    "project_id": self._project_id,
                    "conversation_id": pk,
                    "hash": mark,
                    "generation": generation,
                    "at": now,
                }
            )
        leave_marks(fresh, repeated)
        forget_marks(
            [
                (pk, self._rows[pk].generation - KEPT_GENERATIONS)
                for pk, before in self._grown.items()
                if self._rows[pk].generation // _FORGOTTEN_EVERY != before // _FORGOTTEN_EVERY
                and self._rows[pk].generation > KEPT_GENERATIONS
            ]
        )

    def _newest_size(self, row: ConversationRow) -> Size:
        """The size of the conversation's newest call, which has left a mark."""
        known = self._sizes.get(row.id)
        if known is not None:
            return known
        stored = Call.objects.filter(
            project_id=self._project_id, conversation_id=row.id, generation=row.generation
        )
        messages, size = stored.values_list("sent_messages", "sent_bytes").first() or (None, None)
        return Size(messages=messages, bytes=size, tokens=row.prompt_tokens)

    def _make(self, item: Judged) -> ConversationRow:
        name = conversation_name(item.capture.id or "")
        row = make_row(pk=self._ids.take(), project_id=self._project_id, name=name, item=item)
        self._rows[row.id] = row
        self._names[row.id] = name
        return row

    def _seen(self, mark: str) -> Sequence[Seen]:
        left = self._marks.get(mark)
        if not left:
            return ()
        return [
            Seen(conversation=pk, generation=left[pk], newest=self._newest_of(pk))
            for pk in sorted(left, reverse=True)[:MOST_SEEN]
        ]

    def _newest_of(self, pk: int) -> int:
        row = self._rows.get(pk)
        return self._newest[pk] if row is None else row.generation

    def _learn(self, items: Sequence[Judged]) -> None:
        """Read the marks that the batch looks for, and lock the conversations it may go on with."""
        first: set[str] = set()
        second: list[tuple[set[str], set[str]]] = []
        for item in items:
            links = item.capture.links
            if links is None:
                continue
            caller = _caller_tag(item.caller)
            near = {mark + caller for mark in links.near}
            itself = {mark + caller for mark in links.itself}
            first |= near | itself
            if links.head and not links.prefixes:
                first.add(failed_mark(links.head) + caller)
            if links.is_retry:
                self._retried |= itself
            far = {mark + caller for mark in links.far}
            if far:
                second.append((near, far))
        for _ in range(_LOOKS):
            self._marks.clear()
            self._read(first)
            known = self._marks.keys()
            self._read(set().union(*(far for near, far in second if not near & known)))
            if self._lock():
                return

    def _read(self, marks: Collection[str]) -> None:
        for mark in find_marks(self._project_id, marks):
            self._marks.setdefault(mark.hash, {})[mark.conversation_id] = mark.generation
            self._newest[mark.conversation_id] = mark.newest
            self._names[mark.conversation_id] = mark.name

    def _lock(self) -> bool:
        """Lock the conversations that may be gone on with; False: they have moved meanwhile.

        Those are the ones whose newest call left a mark, and those of a call that is tried again.
        Whatever else is known here can only be branched off, and needs no lock.
        """
        tips = {
            pk
            for mark, left in self._marks.items()
            for pk, generation in left.items()
            if generation == self._newest[pk] or pk in self._rows or mark in self._retried
        }
        if not tips:
            return True
        locked = lock_by_id(self._project_id, tips)
        self._rows = {row.id: self._named.get(row.id, row) for row in locked}
        for left in self._marks.values():
            for pk in [pk for pk in left if pk in tips and pk not in self._rows]:
                del left[pk]  # deleted meanwhile
        is_steady = all(row.generation == self._newest[pk] for pk, row in self._rows.items())
        return is_steady or not connection.features.has_select_for_update


def find_conversation(*, project_id: int, caller: str, links: ChainLinks) -> str | None:
    """The name of the conversation that a request goes on with; None for a new one or a branch.

    `links` are the request's, made without a reply. Reads only, and what it says is a moment old:
    the recorder places the call by itself when it is over.
    """
    tag = _caller_tag(caller)
    found: dict[str, list[SeenMark]] = {}

    def read(marks: Iterable[str]) -> None:
        for mark in find_marks(project_id, [mark + tag for mark in marks]):
            found.setdefault(mark.hash, []).append(mark)

    def look(mark: str) -> list[Seen]:
        left = sorted(found.get(mark + tag, ()), key=lambda one: -one.conversation_id)
        return [
            Seen(conversation=one.conversation_id, generation=one.generation, newest=one.newest)
            for one in left
        ]

    read({*links.near, *links.itself})
    if not any(look(mark) for mark in links.near):
        read(links.far)
    belongs = place(links, look)
    if belongs.placing not in (Placing.CONTINUE, Placing.RETRY):
        return None
    names = {one.conversation_id: one.name for left in found.values() for one in left}
    return names.get(belongs.conversation or 0)


def _is_failed_first(item: Judged, links: ChainLinks) -> bool:
    """Whether a request that goes on with nothing got no reply that is of use."""
    is_failed = item.cause is not None or item.capture.effective_status != "success"
    return is_failed and not links.prefixes


def _size(item: Judged) -> Size:
    return Size(
        messages=item.sent_messages, bytes=item.sent_bytes, tokens=item.health.prompt_tokens
    )


def conversation_name(call_id: str) -> str:
    """The name of the conversation that a call starts: the same whenever it is recorded."""
    return "chat-" + blake2b(call_id.encode(), digest_size=8, person=b"chat").hexdigest()


@lru_cache(maxsize=1024)
def _caller_tag(caller: str) -> str:
    """What tells callers apart in a mark: the same words from two of them are two chats."""
    return "." + blake2b(caller.encode(), digest_size=6, person=b"caller").hexdigest()
