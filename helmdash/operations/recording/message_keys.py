"""Under which keys the messages of calls are stored: once each, however often clients resend them.

A message is told by the hash of itself with all that stood before it (core.text.messages). A first
message has that as its key: a system prompt that all conversations share is stored once. The key of
any other begins with the moment it was first stored, so that what one transaction stores lies side
by side: by its hash alone each message would change a page of the index of its own. Such a message
cannot be looked for by its hash. It is known by what this process has recorded, and otherwise by
what the newest call of its conversation lists: what is new to both is stored.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain
from typing import Any, Final

from helmdash.core.text.messages import HASH, TIMED, hash_of_key
from helmdash.operations.recording.call_rows import Placed
from helmdash.operations.recording.conversation_rows import ConversationRow
from helmdash.operations.recording.judged.judging import Judged
from helmdash.records.call_names import find_within, payloads_at
from helmdash.records.models import StoredMessage
from helmdash.records.statements.bulk import existing_question, find_existing
from helmdash.records.statements.direct import Question

# In each half of the memory: the messages of some thousand calls, a few megabytes.
_MOST_KNOWN: Final = 16_000
_MOST_TALKS: Final = 4_000

# A message that comes with every call need not be written with every call.
MESSAGE_SEEN_PRECISION: Final = timedelta(days=1)

_Message = tuple[int, str]  # project, and what `HASH` cuts out
_Talk = tuple[int, int]  # project, conversation


@dataclass(slots=True)
class _Memory:
    """What this process has stored. Of two halves the older goes when the newer is full.

    talks: the newest generation of a conversation whose messages are known.
    """

    keys: dict[_Message, str] = field(default_factory=dict)
    older_keys: dict[_Message, str] = field(default_factory=dict)
    talks: dict[_Talk, int] = field(default_factory=dict)
    older_talks: dict[_Talk, int] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take_in(self, keys: Mapping[_Message, str], talks: Mapping[_Talk, int]) -> None:
        with self.lock:
            self.keys.update(keys)
            self.talks.update(talks)
            if len(self.keys) > _MOST_KNOWN:
                self.keys, self.older_keys = {}, self.keys
            if len(self.talks) > _MOST_TALKS:
                self.talks, self.older_talks = {}, self.talks

    def key_of(self, message: _Message) -> str | None:
        return self.keys.get(message) or self.older_keys.get(message)

    def newest_of(self, talk: _Talk) -> int | None:
        return self.talks.get(talk) or self.older_talks.get(talk)


_memory = _Memory()


class MessageKeys:
    """The keys of one transaction's messages. What it finds out counts once `keep` is called.

    made: keys that nobody has stored anything under before.
    """

    def __init__(self, project_id: int, now: datetime) -> None:
        self._project_id = project_id
        self._begins = f"{TIMED}{int(now.timestamp() * 1000):011x}:"
        self._keys: dict[_Message, str] = {}
        # By whole hash, of those that were asked for: clients send their history with each call.
        self._given: dict[str, str] = {}
        self._talks: dict[_Talk, int] = {}
        self.made: set[str] = set()

    def learn(self, taken: Iterable[tuple[Placed, Mapping[str, Any]]]) -> None:
        """Look up what the newest stored calls of these calls' conversations list, where another
        process has recorded them. Two queries, or none. taken: in their order, with their rows."""
        wanted: list[tuple[int, int, int]] = []
        for placed, row in taken:
            conversation, generation = placed.conversation, row["generation"]
            if conversation is None or generation is None or not placed.item.message_hashes:
                continue
            talk = (self._project_id, conversation.id)
            if talk not in self._talks and generation > 1:
                before = generation - 1
                if _memory.newest_of(talk) != before:
                    wanted.append((conversation.id, before, before))
            self._talks[talk] = generation
        if wanted:
            self._read(wanted)

    def learn_ahead(self, rows: Iterable[ConversationRow]) -> None:
        """`learn`, of conversations that will have a call with messages, before any of them has. A
        message that two share is stored once so, whichever call has it first."""
        wanted: list[tuple[int, int, int]] = []
        for row in rows:
            talk, newest = (self._project_id, row.id), row.generation
            if newest and talk not in self._talks:
                if _memory.newest_of(talk) != newest:
                    wanted.append((row.id, newest, newest))
                self._talks[talk] = newest
        if wanted:
            self._read(wanted)

    def keys_of(self, hashes: Sequence[str]) -> list[str]:
        """The keys of a call's messages, by the hashes of the whole history up to each."""
        keys = [*hashes[:1]]
        for each in hashes[1:]:
            key = self._given.get(each)
            if key is None:
                key = self._given[each] = self._key_of((self._project_id, each[HASH]))
            keys.append(key)
        return keys

    def _key_of(self, message: _Message) -> str:
        key = self._keys.get(message) or _memory.key_of(message)
        if key is None:
            key = self._begins + message[1]
            self.made.add(key)
        self._keys[message] = key
        return key

    def likely(self, items: Iterable[Judged]) -> list[str]:
        """The keys of calls that are not placed yet, as far as this process knows them, each
        once."""
        histories = [item.message_hashes for item in items if item.message_hashes]
        first = {history[0] for history in histories}
        found = (
            each if each in first else _memory.key_of((self._project_id, each[HASH]))
            for each in dict.fromkeys(chain.from_iterable(histories))
        )
        return [*dict.fromkeys(filter(None, found))]

    def keep(self) -> None:
        """After the commit: the next transactions know what this one has stored."""
        _memory.take_in(self._keys, self._talks)

    def _read(self, calls: Sequence[tuple[int, int, int]]) -> None:
        places = find_within(self._project_id, calls)
        payloads = payloads_at(self._project_id, places).filter(message_hashes__isnull=False)
        for keys in payloads.values_list("message_hashes", flat=True):
            for key in keys or ():
                self._keys[self._project_id, hash_of_key(key)] = key


def find_seen(project_id: int, keys: Sequence[str], *, now: datetime) -> set[str]:
    """Under which of the keys a message is stored that was seen lately. One query."""
    return find_existing(StoredMessage, "hash", keys, _seen_lately(project_id, now))


def seen_question(project_id: int, keys: Sequence[str], *, now: datetime) -> Question:
    """What `find_seen` asks; one key at least."""
    return existing_question(StoredMessage, "hash", keys, _seen_lately(project_id, now))


def _seen_lately(project_id: int, now: datetime) -> dict[str, object]:
    return {"project_id": project_id, "latest_seen_at": now - MESSAGE_SEEN_PRECISION}


def forget() -> None:
    """Forget what was stored, as a new process would. For tests."""
    with _memory.lock:
        for each in (_memory.keys, _memory.older_keys, _memory.talks, _memory.older_talks):
            each.clear()
