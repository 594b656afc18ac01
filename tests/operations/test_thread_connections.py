"""Threads that keep their connection to SQLite do so for as long as they live, and no longer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from helmdash.operations.database.sqlite_file import _Kept, give_back, thread_connection
from helmdash.records.models import Project

pytestmark = pytest.mark.django_db(transaction=True)


def ask() -> BaseDatabaseWrapper:
    with thread_connection():
        Project.objects.exists()
    return connections[DEFAULT_DB_ALIAS]


def ask_unchecked() -> BaseDatabaseWrapper:
    try:
        Project.objects.exists()
    finally:
        give_back()
    return connections[DEFAULT_DB_ALIAS]


def ask_again_after_a_fault() -> BaseDatabaseWrapper:
    ask()
    with suppress(DatabaseError), thread_connection(), connection.cursor() as cursor:
        cursor.execute("no statement")
    return ask()


@pytest.mark.parametrize("work", [ask, ask_unchecked, ask_again_after_a_fault])
def test_a_thread_that_ends_leaves_no_connection_open(
    work: Callable[[], BaseDatabaseWrapper],
) -> None:
    with ThreadPoolExecutor(1) as threads:
        used = threads.submit(work).result()
        again = threads.submit(work).result()
        kept = used.connection is not None

    assert again is used
    assert kept is (connection.vendor == "sqlite")
    assert used.connection is None


def test_the_collector_may_come_by_on_a_thread_with_an_event_loop() -> None:
    held: list[_Kept] = []

    def open_one() -> BaseDatabaseWrapper:
        Project.objects.exists()
        held.append(_Kept(connections[DEFAULT_DB_ALIAS]))
        return connections[DEFAULT_DB_ALIAS]

    async def let_go() -> None:
        held.clear()

    with ThreadPoolExecutor(1) as threads:
        used = threads.submit(open_one).result()
        asyncio.run(let_go())

        assert used.connection is None
