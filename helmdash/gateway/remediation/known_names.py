"""Conversations that name none, recognized without the database while their call is being stored.

By what `core.conversations.chains` calls going on: the request holds all that the newest call
asked, and the reply to it. Whatever else there is (a branch, a compaction, another process), the
database tells.
"""

from __future__ import annotations

from collections import OrderedDict

from helmdash.core.conversations.fingerprints import NEAR_PREFIXES, ChainLinks

# Conversations under way at once in one process, by far; an entry is some hundred bytes.
_MOST = 10_000

Who = tuple[int, str]  # project, caller


class KnownNames:
    """The newest calls of this process. Used on one event loop."""

    def __init__(self, *, most: int = _MOST) -> None:
        self._most = most
        self._names: OrderedDict[tuple[Who, str], str] = OrderedDict()
        self._marks: dict[tuple[Who, str], str] = {}

    def note(self, who: Who, links: ChainLinks | None, name: str) -> None:
        """Keep the name for the call that goes on from these traces; links None: nothing to know it
        by."""
        self._forget(self._marks.get((who, name)), who)
        if links is None or not links.reply:
            return
        key = (who, links.reply)
        if self._names.get(key, name) != name:
            # Two conversations that went the same way: which one goes on, the database tells.
            self._forget(links.reply, who)
            return
        self._names[key] = name
        self._marks[who, name] = links.reply
        while len(self._names) > self._most:
            (oldest, mark), _ = next(iter(self._names.items()))
            self._forget(mark, oldest)

    def find(self, who: Who, links: ChainLinks) -> str | None:
        """The conversation that a request goes on with; None: unknown here."""
        if links.is_retry:
            return None
        for mark in links.replies[:NEAR_PREFIXES]:
            if mark and (name := self._names.get((who, mark))):
                return name
        return None

    def _forget(self, mark: str | None, who: Who) -> None:
        if mark is None:
            return
        name = self._names.pop((who, mark), None)
        if name is not None:
            self._marks.pop((who, name), None)
