"""Finding the conversation of calls that name none, with what the database knows.

Calls of one batch are placed one after the other, each knowing what those before it left, so that
a batch gives the same places as its calls one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from hashlib import blake2b

from django.db import connection

from helmdash.core.conversations.called_tools import CALLED_TOOL_VERSION
from helmdash.core.conversations.chains import Placing, Seen, Size, is_fresh_start, place
from helmdash.core.conversations.fingerprints import CHAIN_VERSION, ChainLinks, fingerprints_of
from helmdash.core.conversations.first_retries import (
    FIRST_RETRY_VERSION,
    failed_fingerprint,
    is_same_again,
)
from helmdash.core.conversations.kept_replies import KEPT_REPLY_VERSION, place_after
from helmdash.core.conversations.repeated_streams import NewestStream
from helmdash.core.values import quick_value
from helmdash.operations.recording.conversation_rows import (
    ConversationIds,
    ConversationRow,
    lock_by_id,
    make_row,
)
from helmdash.operations.recording.judged.judging import Judged
from helmdash.records.querysets import calls_of
from helmdash.records.statements.fingerprints import (
    MOST_SEEN,
    SeenFingerprint,
    delete_fingerprints,
    find_fingerprints,
    store_fingerprints,
)

# How far back a branch is recognized as one: so many calls. Old fingerprints go when the count
# passes a multiple of the second number, for a statement with every call would cost more than they
# do.
KEPT_GENERATIONS = 64
_FORGOTTEN_EVERY = 32
# Between reading fingerprints and locking their conversations another writer may have moved them.
_LOOKS = 5


@quick_value(frozen=True, slots=True, kw_only=True)
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
        self._fingerprints: dict[
            str, dict[int, int]
        ] = {}  # fingerprint -> conversation -> generation
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

    @property
    def rows(self) -> Iterable[ConversationRow]:
        """The conversations that it holds locked, or has made."""
        return self._rows.values()

    def place(self, item: Judged, links: ChainLinks) -> Inferred:
        """The conversation of the next call, made where it is new."""
        caller = _caller_tag(item.caller)
        before = self._seen(links.after + caller) if links.after else ()
        if before:
            found, rule = place_after(before), KEPT_REPLY_VERSION
        else:
            found = place(links, lambda fingerprint: self._seen(fingerprint + caller))
            rule = CALLED_TOOL_VERSION if found.by_call else CHAIN_VERSION
        how = f"{rule} {found.placing}"
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
            return Inferred(row=row, placed_by=f"{rule} {Placing.CONTINUE}")
        return Inferred(row=row, placed_by=how, opened_by=Placing.COMPACTION.value)

    def leave(self, row: ConversationRow, item: Judged, links: ChainLinks) -> None:
        """Note the fingerprints of a call that its conversation has just taken in."""
        self._grown.setdefault(row.id, row.generation - 1)
        self._sizes[row.id] = _size(item)
        self._ends[row.id] = (item.started_at, item.capture.latency_ms)
        self._leave(row, item, links, row.generation)

    def leave_later(
        self, row: ConversationRow, item: Judged, links: ChainLinks, *, generation: int
    ) -> None:
        """Note the fingerprints of a call that another door told of before, without any: it has
        this number in the conversation, whose row is locked."""
        self._rows.setdefault(row.id, row)
        self._names.setdefault(row.id, row.name)
        self._leave(row, item, links, generation)

    def _leave(self, row: ConversationRow, item: Judged, links: ChainLinks, number: int) -> None:
        caller = _caller_tag(item.caller)
        failed = failed_fingerprint(links.head) if _is_failed_first(item, links) else ""
        for fingerprint in filter(None, (*fingerprints_of(links, number), failed)):
            self._fingerprints.setdefault(fingerprint + caller, {})[row.id] = number
            self._left[row.id, fingerprint + caller] = number

    def _failed_before(self, item: Judged, links: ChainLinks) -> ConversationRow | None:
        """The conversation of this very request, if its only call so far has failed before it."""
        if links.prefixes or not links.head:
            return None
        for seen in self._seen(failed_fingerprint(links.head) + _caller_tag(item.caller)):
            row = self._rows.get(seen.conversation) if seen.is_tip else None
            if row is None or row.model_key != item.model_key:
                continue
            newest = NewestStream.from_json(row.newest_stream)
            if row.earlier_attempts and (newest is None or not newest.is_broken):
                continue  # it was answered since, under the same number
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
        stored = calls_of(row).filter(generation=row.generation)
        found = stored.values_list("started_at", "latency_ms").first()
        return found if found is not None else (row.latest_at, None)

    def write(self, now: datetime) -> None:
        """Write the fingerprints of the batch, after its conversations."""
        fresh: list[dict[str, object]] = []
        repeated: list[dict[str, object]] = []
        for (pk, fingerprint), generation in self._left.items():
            is_new = self._rows[pk].is_new
            (fresh if is_new else repeated).append(
                {
                    "project_id": self._project_id,
                    "conversation_id": pk,
                    "hash": fingerprint,
                    "generation": generation,
                    "at": now,
                }
            )
        store_fingerprints(fresh, repeated)
        delete_fingerprints(
            [
                (pk, self._rows[pk].generation - KEPT_GENERATIONS)
                for pk, before in self._grown.items()
                if self._rows[pk].generation // _FORGOTTEN_EVERY != before // _FORGOTTEN_EVERY
                and self._rows[pk].generation > KEPT_GENERATIONS
            ]
        )

    def _newest_size(self, row: ConversationRow) -> Size:
        """The size of the conversation's newest call, which has left a fingerprint."""
        known = self._sizes.get(row.id)
        if known is not None:
            return known
        stored = calls_of(row).filter(generation=row.generation)
        messages, size = stored.values_list("sent_messages", "sent_bytes").first() or (None, None)
        return Size(messages=messages, bytes=size, tokens=row.prompt_tokens)

    def _make(self, item: Judged) -> ConversationRow:
        name = conversation_name(item.capture.id or "")
        row = make_row(pk=self._ids.take(), project_id=self._project_id, name=name, item=item)
        self._rows[row.id] = row
        self._names[row.id] = name
        return row

    def _seen(self, fingerprint: str) -> Sequence[Seen]:
        left = self._fingerprints.get(fingerprint)
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
        """Read what the batch looks for, and lock the conversations it may go on with."""
        first: set[str] = set()
        second: list[tuple[set[str], set[str]]] = []
        for item in items:
            links = item.capture.links
            if links is None:
                continue
            caller = _caller_tag(item.caller)
            near = {fingerprint + caller for fingerprint in links.near}
            itself = {fingerprint + caller for fingerprint in links.itself}
            first |= near | itself
            if links.head and not links.prefixes:
                first.add(failed_fingerprint(links.head) + caller)
            if links.is_retry:
                self._retried |= itself
            far = {fingerprint + caller for fingerprint in links.far}
            if far:
                second.append((near, far))
        for _ in range(_LOOKS):
            self._fingerprints.clear()
            self._read(first)
            known = self._fingerprints.keys()
            self._read(set().union(*(far for near, far in second if not near & known)))
            if self._lock():
                return

    def _read(self, fingerprints: Collection[str]) -> None:
        for fingerprint in find_fingerprints(self._project_id, fingerprints):
            self._fingerprints.setdefault(fingerprint.hash, {})[fingerprint.conversation_id] = (
                fingerprint.generation
            )
            self._newest[fingerprint.conversation_id] = fingerprint.newest
            self._names[fingerprint.conversation_id] = fingerprint.name

    def _lock(self) -> bool:
        """Lock the conversations that may be gone on with; False: they have moved meanwhile.

        Those are the ones whose newest call left a fingerprint, and those of a call that is tried
        again. Whatever else is known here can only be branched off, and needs no lock.
        """
        tips = {
            pk
            for fingerprint, left in self._fingerprints.items()
            for pk, generation in left.items()
            if generation == self._newest[pk] or pk in self._rows or fingerprint in self._retried
        }
        if not tips:
            return True
        locked = lock_by_id(self._project_id, tips)
        self._rows = {row.id: self._named.get(row.id, row) for row in locked}
        for left in self._fingerprints.values():
            for pk in [pk for pk in left if pk in tips and pk not in self._rows]:
                del left[pk]  # deleted meanwhile
        is_steady = all(row.generation == self._newest[pk] for pk, row in self._rows.items())
        return is_steady or not connection.features.has_select_for_update


def find_conversation(
    *,
    project_id: int,
    caller: str,
    links: ChainLinks,
    is_gone_on_with: Callable[[str], bool],
) -> str | None:
    """The name of the conversation that a request goes on with; None for a new one or a branch.

    `links` are the request's, made without a reply. Where its newest replies alone were kept, its
    client has compacted it, or changed something far back: `is_gone_on_with` tells of a name
    whether it was that. Reads only, and what it says is a moment old: the recorder places the call
    by itself when it is over.
    """
    tag = _caller_tag(caller)
    found: dict[str, list[SeenFingerprint]] = {}

    def read(fingerprints: Iterable[str]) -> None:
        for fingerprint in find_fingerprints(
            project_id, [fingerprint + tag for fingerprint in fingerprints]
        ):
            found.setdefault(fingerprint.hash, []).append(fingerprint)

    def look(fingerprint: str) -> list[Seen]:
        left = sorted(found.get(fingerprint + tag, ()), key=lambda one: -one.conversation_id)
        return [
            Seen(conversation=one.conversation_id, generation=one.generation, newest=one.newest)
            for one in left
        ]

    read({*links.near, *links.itself})
    if not any(look(fingerprint) for fingerprint in links.near):
        read(links.far)
    belongs = place(links, look)
    names = {one.conversation_id: one.name for left in found.values() for one in left}
    name = names.get(belongs.conversation or 0)
    if belongs.placing is Placing.COMPACTION and belongs.by_run and name is not None:
        return name if is_gone_on_with(name) else None
    return name if belongs.placing in (Placing.CONTINUE, Placing.RETRY) else None


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
    """What tells callers apart in a fingerprint: the same words from two of them are two chats."""
    return "." + blake2b(caller.encode(), digest_size=6, person=b"caller").hexdigest()
