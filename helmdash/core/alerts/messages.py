"""Messages: what is said of changes of alerts, with the keys that tell a repeat.

The key of an alert is the same from its beginning to its end, and another one the next time. That
of a message is made of the changes it tells: sent again, it is the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from helmdash.core.alerts.states import AlertState

# Entries of one message: 500 of 400 bytes are 200 kB, which receivers take (Alertmanager's and
# most proxies' limits begin at 1 MB).
MOST_ENTRIES: Final = 500
_KEY_CHARS: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One alert in a message. status: firing or resolved. Times are ISO 8601; ends_at None: firing.

    path: of the page to look at, below the server's address.
    """

    dedup_key: str
    status: str
    severity: str
    subject: str
    title: str
    detail: str
    path: str
    starts_at: str
    ends_at: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What is sent to every channel of a rule.

    key: tells a repeat. incident: the same for all messages of the rule. firing: how many of its
    alerts fire now. total: how many changes the group has, of which this is part `part` of `parts`.
    is_grouped: the rule gathers changes, instead of telling each on its own.
    """

    key: str
    incident: str
    project: str
    rule: str
    kind: str
    firing: int
    total: int
    part: int
    parts: int
    entries: tuple[Entry, ...]
    is_grouped: bool = True
    is_test: bool = False

    @property
    def status(self) -> str:
        """firing while one of what it tells goes on, else resolved."""
        is_firing = any(entry.status == "firing" for entry in self.entries)
        return "firing" if is_firing else "resolved"

    @property
    def severity(self) -> str:
        """The greatest among its entries."""
        return max((entry.severity == "critical", entry.severity) for entry in self.entries)[1]


def alert_key(rule_uid: str, state: AlertState) -> str:
    """The key of one alert in its episode.

    >>> len(_digest("rule", "talk", 1))
    32
    """
    return _digest(rule_uid, state.subject, state.episode)


def message_key(rule_uid: str, states: Iterable[AlertState]) -> str:
    """The key of a message that tells these changes, in whatever order.

    Also by their time: numbers begin anew where an alert was forgotten.
    """
    changes = (f"{each.subject}\n{each.revision}\n{each.changed_at}" for each in states)
    return _digest(rule_uid, *sorted(changes))


def beside_key(key: str, channels: Iterable[int]) -> str:
    """The key of what tells some channels alone: others may be told of the same changes at the same
    moment, for another reason."""
    return _digest(key, *channels)


def again_key(rule_uid: str, channel: int, part: int) -> str:
    """The key of what tells a channel again what fires: of each part there is one at a time."""
    return _digest(rule_uid, "again", channel, part)


def entry_of(rule_uid: str, state: AlertState) -> Entry:
    """An alert as a message tells it."""
    return Entry(
        dedup_key=alert_key(rule_uid, state),
        status="firing" if state.is_firing else "resolved",
        severity=state.severity.value,
        subject=state.subject,
        title=state.title,
        detail=state.detail,
        path=state.path,
        starts_at=state.opened_at.isoformat(),
        ends_at=state.resolved_at.isoformat() if state.resolved_at else None,
    )


def messages_of(
    changes: Sequence[AlertState],
    *,
    uid: str,
    project: str,
    rule: str,
    kind: str,
    firing: int,
    is_grouped: bool,
) -> Iterator[tuple[Message, Sequence[AlertState]]]:
    """The messages that tell a group of changes, MOST_ENTRIES in each (or one,
    where the rule does not gather), and what each of them tells.

    uid: the rule's. The worst and then the newest come first: who reads only the first part has
    them.
    """
    ordered = sorted(
        changes,
        key=lambda each: (each.is_firing, each.severity == "critical", each.changed_at),
        reverse=True,
    )
    size = MOST_ENTRIES if is_grouped else 1
    parts = [ordered[at : at + size] for at in range(0, len(ordered), size)]
    for number, part in enumerate(parts, start=1):
        message = Message(
            key=message_key(uid, part),
            incident=uid,
            project=project,
            rule=rule,
            kind=kind,
            firing=firing,
            total=len(changes) if is_grouped else 1,
            part=number if is_grouped else 1,
            parts=len(parts) if is_grouped else 1,
            entries=tuple(entry_of(uid, each) for each in part),
            is_grouped=is_grouped,
        )
        yield message, part


def headline(message: Message) -> str:
    """One line that says what it is about."""
    test = "Test: " if message.is_test else ""
    if message.total == 1:
        entry = message.entries[0]
        over = "Resolved: " if entry.status == "resolved" else ""
        return f"{test}{over}{entry.title}"
    begun = sum(entry.status == "firing" for entry in message.entries)
    if message.parts > 1:
        return f"{test}{message.rule}: {message.total:,} changes, {message.firing:,} firing"
    over_count = message.total - begun
    words = [f"{begun:,} firing"] if begun else []
    words += [f"{over_count:,} resolved"] if over_count else []
    return f"{test}{message.rule}: {', '.join(words)}"


def _digest(*parts: object) -> str:
    joined = "\n".join(str(part) for part in parts)
    return hashlib.sha256(joined.encode()).hexdigest()[:_KEY_CHARS]
