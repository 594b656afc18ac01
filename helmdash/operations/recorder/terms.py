"""Limits, states and counts of the recorder."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of one recorder; times in seconds."""

    # With calls of a few kB; reached only when the database cannot keep up.
    queue_calls: int = 1_000
    queue_bytes: int = 32 * 1024 * 1024
    # One transaction: long enough to be worth its fsync, short enough to be over soon.
    batch_calls: int = 500
    batch_bytes: int = 4 * 1024 * 1024
    # Nobody waits for a call of the gateway, and a group costs little more than one call: while at
    # least `rush` calls come in every `linger`, the group may grow for as long as `most_linger`.
    linger: float = 0.025
    rush: int = 4
    most_linger: float = 0.25
    # Clients whose reports were stored together send the next ones at once: how long a group waits
    # for as many again, which are then stored by one commit and not by two.
    rejoin: float = 0.002
    # How long an outage may be before reports are turned away at the door.
    outage: float = 1.0
    # How long a report waits to be stored. Together with `grace` less than the 5 seconds in which a
    # client is promised an answer, also on a busy machine; no group of calls takes that long where
    # the database is well.
    timeout: float = 3.0
    # How long a report waits for the end of a transaction that is under way by then.
    grace: float = 0.5
    # How long the database may take for one question before it is taken for silent.
    silence: float = 2.0


class RecorderState(StrEnum):
    """What the recorder does with the next call."""

    STORING = "storing"
    SPOOLING = "spooling"
    FULL = "full"
    STOPPED = "stopped"


class RecorderFull(Exception):
    """A report cannot be taken in just now; the same report may be sent again later."""


@dataclass(slots=True)
class Counts:
    """What became of calls since the process started."""

    accepted: int = 0
    stored: int = 0
    duplicate: int = 0
    rejected: int = 0
    spooled: int = 0
    dropped: int = 0
    in_flight_lost: int = 0
    bare: int = 0
    """Stored without their texts; among the stored."""
    damaged_lines: int = 0
    """Of the spool, put aside; not calls."""
    unheard: int = 0
    """Stored by the writer process, which ended before it said so: as many of the calls in doubt
    are no duplicates when they are found again."""

    @property
    def waiting(self) -> int:
        """How many calls were taken in of which nothing is known yet."""
        return self.accepted - self.stored - self.duplicate - self.rejected - self.dropped
