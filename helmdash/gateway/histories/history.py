"""A client's history as it came, and what a clear makes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import orjson

from helmdash.core.budgets.budgets import EffectiveBudget
from helmdash.core.care.reminders import HEADINGS, build_package, package_bytes
from helmdash.core.care.restarts import (
    Beginning,
    HistoryEntry,
    PartKind,
    arrange,
    carried_of,
    earlier_of,
    end_of,
    facts_of,
    fingerprint,
    is_standstill,
    pending_of,
)
from helmdash.core.text.tokens import TOKENS_PER_IMAGE, Estimator, utf8_bytes
from helmdash.gateway.histories.rewriting import Form, entries_of, form_of
from helmdash.gateway.outgoing import OutgoingRequest
from helmdash.operations import care
from helmdash.providers.protocols import ClientFormat
from helmdash.providers.wire import Object

# A fifth for the package, as much for the user's messages that wait: the rest is for the work.
_CARRIED_SHARE = 5
# A hundred calls by name and argument; in large windows, too, a package is a handover.
_MOST_CALL_CHARS = 8_000


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """A request as it came, and what its entries say. `budget` is the one of its model."""

    form: Form
    request: OutgoingRequest
    items: Sequence[Object] = field(repr=False)
    entries: Sequence[HistoryEntry] = field(repr=False)
    budget: EffectiveBudget | None = None

    @property
    def body(self) -> bytes:
        """The request's bytes."""
        return self.request.body

    @property
    def parsed(self) -> dict[str, Any]:
        """What they say."""
        return self.request.parsed

    def for_clear(self) -> care.ClientHistory:
        """What a clear would drop of it, and what it would carry over."""
        end = end_of(self.entries)
        return care.ClientHistory(
            messages=end,
            digest=lambda: fingerprint(self.entries[:end]),
            carried=lambda: self._carried(pending_of(self.entries, end)),
            draft=lambda: self._draft(end),
            earlier=lambda: self._earlier(end),
            is_standstill=lambda since, start, digest: self._is_standstill(
                since, start, digest, end
            ),
        )

    def _is_standstill(self, since: int, start: int, digest: str, end: int) -> bool:
        """False, where the client itself has changed its beginning: there something is new."""
        if start > end or fingerprint(self.entries[:start]) != digest:
            return False
        return is_standstill(self.entries, since=since, start=start, end=end)

    def beginning(self, restart: care.Restart | None) -> Beginning:
        """What was dropped of it. restart None: nothing; nothing either where the client itself has
        changed its beginning."""
        if restart is None:
            return Beginning()
        count = restart.messages
        if count > len(self.entries):
            return Beginning()
        if count and fingerprint(self.entries[:count]) != restart.digest:
            return Beginning()
        return Beginning(
            entries=count,
            carried=restart.carried,
            package=restart.package,
            inserts=restart.inserts,
        )

    def rebuilt(self, *, round_number: int) -> Beginning:
        """A fresh start that nothing is stored of: its package is drafted from the history."""
        client = self.for_clear()
        most = 0 if self.budget is None else package_bytes(self.budget)
        package = build_package(
            (), max_bytes=most, round_number=round_number, draft=client.draft()
        ).text
        return Beginning(entries=client.messages, carried=client.carried(), package=package)

    def bare(self) -> Beginning:
        """What a clear would leave, with nothing in the package."""
        client = self.for_clear()
        return Beginning(entries=client.messages, carried=client.carried())

    def is_dropping(self, *, before: Beginning, after: Beginning) -> bool:
        """Whether something of the client's that was sent so far would be sent no more."""
        return bool(self._sent(before) - self._sent(after))

    def _sent(self, beginning: Beginning) -> set[int]:
        steps = arrange(self.entries, beginning)
        return {step.index for step in steps if step.piece is not PartKind.SAID}

    def _carried(self, pending: Sequence[int]) -> tuple[int, ...]:
        budget = self.budget
        if budget is None or len(pending) < 2:
            return tuple(pending)
        tokens = (budget.limit_tokens or budget.input_tokens) // _CARRIED_SHARE
        sizes = [self._size(index, budget.estimator) for index in pending]
        room = budget.estimator.bytes_within(tokens)
        return carried_of(self.entries, pending, sizes, room=room)

    def _room_for_calls(self) -> int:
        """Characters of the draft that tell of calls: half a package, which notes go before."""
        most = package_bytes(self.budget) if self.budget is not None else _MOST_CALL_CHARS
        return min(most // 2, _MOST_CALL_CHARS)

    def _size(self, index: int, estimator: Estimator) -> int:
        """The bytes of what the user says there; a picture counts as the text it costs as much as,
        for the base64 of one says nothing."""
        whole = len(orjson.dumps(self.form.own(self.items[index])))
        text = utf8_bytes(self.entries[index].text)
        return min(whole, text + estimator.bytes_within(TOKENS_PER_IMAGE))

    def _earlier(self, end: int) -> str:
        pending = pending_of(self.entries, end)
        carried = self._carried(pending)
        return earlier_of(self.entries, [at for at in pending if at not in carried])

    def _draft(self, end: int) -> Mapping[str, str]:
        goal, progress = facts_of(self.entries[:end], room=self._room_for_calls())
        told = "\n".join(part for part in (goal, self._earlier(end)) if part)
        return dict(zip(HEADINGS, (told, progress), strict=False))


def history_of(
    client: ClientFormat, outgoing: OutgoingRequest, *, budget: EffectiveBudget | None
) -> History | None:
    """The history in a request; None for a format without one (`/api/generate`)."""
    form = form_of(client)
    if form is None:
        return None
    items = entries_of(form, outgoing.parsed)
    return History(
        form=form,
        request=outgoing,
        items=items,
        entries=_Entries(form, items),
        budget=budget,
    )


class _Entries(Sequence[HistoryEntry]):
    """What items say, each read when it is asked for: before most calls only the last one is."""

    def __init__(self, form: Form, items: Sequence[Object]) -> None:
        self._form = form
        self._items = items
        self._read: list[HistoryEntry | None] = [None] * len(items)

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, at: int) -> HistoryEntry: ...

    @overload
    def __getitem__(self, at: slice) -> list[HistoryEntry]: ...

    def __getitem__(self, at: int | slice) -> HistoryEntry | list[HistoryEntry]:
        if isinstance(at, slice):
            return [self[index] for index in range(*at.indices(len(self)))]
        found = self._read[at]
        if found is None:
            found = self._read[at] = self._form.read(self._items[at])
        return found
