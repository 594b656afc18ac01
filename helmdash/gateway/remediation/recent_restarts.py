"""What was last sent of a conversation after a fresh start, kept in memory.

For calls while the database is silent: without it their whole history would be sent again, which
no longer fits. Told apart by what the client's history begins with, so that conversations without a
name are found too.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from helmdash.core.care.restarts import Beginning, HistoryEntry, fingerprint, fingerprints

# Conversations that are under way at once in one process, by far; a package is some kilobytes.
_MOST = 1_000
_MOST_CHARS = 16 * 1024 * 1024

RestartKey = tuple[int, str, str]  # project, caller, the conversation's name as the client gives it


class RecentRestarts:
    """The newest ones of this process. Used on one event loop."""

    def __init__(self, *, most: int = _MOST, most_chars: int = _MOST_CHARS) -> None:
        self._most, self._most_chars = most, most_chars
        self._kept: OrderedDict[tuple[RestartKey, int, str], Beginning] = OrderedDict()
        self._chars = 0

    def keep(self, who: RestartKey, history: Sequence[HistoryEntry], beginning: Beginning) -> None:
        """Note how a request was sent; one that was sent whole is nothing to note."""
        count = beginning.entries
        if not count:
            return
        key = (who, count, fingerprint(history[:count]))
        self._drop(key)
        self._kept[key] = beginning
        self._chars += len(beginning.package)
        while len(self._kept) > self._most or self._chars > self._most_chars:
            self._drop(next(iter(self._kept)))

    def find(self, who: RestartKey, history: Sequence[HistoryEntry]) -> Beginning:
        """The newest one that fits this history; an empty one, where none does."""
        found = Beginning()
        for count, digest in enumerate(fingerprints(history), 1):
            found = self._kept.get((who, count, digest), found)
        return found

    def _drop(self, key: tuple[RestartKey, int, str]) -> None:
        gone = self._kept.pop(key, None)
        if gone is not None:
            self._chars -= len(gone.package)
