"""Which reads may go to a replica: of what was recorded, by a request that only reads.

All else is read where it is written: keys, sessions, people, projects, budgets, upstreams,
catalogs, jobs and the ledger decide something, and are small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model

from helmdash.records import models

# Its name among Django's databases; there where HELMDASH_REPLICA_URL is set.
REPLICA_DB_ALIAS = "replica"
_RECORDED: frozenset[type[Model]] = frozenset(
    {
        models.Call,
        models.CallName,
        models.CallPayload,
        models.Conversation,
        models.Fit,
        models.Guidance,
        models.HealthChange,
        models.PlanAttempt,
        models.PlanCatalog,
        models.PlanRecord,
        models.PlanStep,
        models.Rollup,
        models.RollupState,
        models.Round,
        models.StoredMessage,
        models.UncountedCalls,
    }
)


class Reading:
    """A request that only reads, and where it does: decided when it first asks for something that
    was recorded, and the same to its end.

    may: whether the replica has all that was committed by now.
    """

    def __init__(self, may: Callable[[], bool]) -> None:
        self._may = may
        self._is_decided = False
        self.is_on_replica = False

    def decide(self) -> bool:
        """Whether it reads from the replica."""
        if not self._is_decided:
            self._is_decided, self.is_on_replica = True, self._may()
        return self.is_on_replica

    def stay(self) -> None:
        """Read no more from the replica: what the request writes itself is not there yet."""
        self._is_decided, self.is_on_replica = True, False


_reading: ContextVar[Reading | None] = ContextVar("reading", default=None)


@contextmanager
def reading_elsewhere(may: Callable[[], bool]) -> Iterator[Reading]:
    """A block, a request's, that may read from the replica where `may` says so."""
    reading = Reading(may)
    token = _reading.set(reading)
    try:
        yield reading
    finally:
        _reading.reset(token)


def is_on_replica() -> bool:
    """Whether this is the block of a request that reads from the replica."""
    reading = _reading.get()
    return reading is not None and reading.is_on_replica


class ReplicaRouter:
    """Django's router: asked before every statement of the ORM."""

    def db_for_read(self, model: type[Model], **hints: Any) -> str:
        reading = _reading.get()
        # What is read in a transaction is to be written by it.
        if reading is None or model not in _RECORDED or connection.in_atomic_block:
            return DEFAULT_DB_ALIAS
        return REPLICA_DB_ALIAS if reading.decide() else DEFAULT_DB_ALIAS

    def db_for_write(self, model: type[Model], **hints: Any) -> str:
        reading = _reading.get()
        if reading is not None:
            reading.stay()
        return DEFAULT_DB_ALIAS

    def allow_relation(self, one: Model, other: Model, **hints: Any) -> bool:
        """They are the same rows on both."""
        return True

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool | None:
        """What the replica has comes by replication."""
        return False if db == REPLICA_DB_ALIAS else None


def connection_for(model: type[Model]) -> BaseDatabaseWrapper:
    """The connection for a statement that is written by hand, and reads recorded rows."""
    return connections[ReplicaRouter().db_for_read(model)]
