"""What the recording tests share: a project with known lines, and short ways to record and look."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import datetime
from typing import Any, TypeVar

import psycopg
from django.db import connection

from helmdash.core.calls.capture import Capture
from helmdash.operations.recorder.own_connection import use_own_connection
from helmdash.operations.recording.call_batch import Recorded
from helmdash.operations.recording.calls import record_calls
from helmdash.queries.access.access import ProjectInfo, project_info
from helmdash.records.models import Budget, Conversation, Project
from tests.factories import NOW, make_capture

Result = TypeVar("Result")

# 128,000 tokens of context: yellow above 100,000, red above 115,200.
HEALTHY, CAUTION, CRITICAL = 20_000, 100_001, 115_201


def make_ruled_project(**over: Any) -> ProjectInfo:
    """A project (the default one unless a slug is given), under three budgets."""
    if not Budget.objects.exists():
        for key, context_length in (
            ("", None),
            ("openai/gpt-4o", 128_000),
            ("anthropic/", 200_000),
        ):
            Budget.objects.create(
                key=key,
                input_tokens=16_000 if not key else 100_000,
                output_tokens=1_500,
                tier="A" if key else "C",
                context_length=context_length,
            )
    given = {"slug": "default", "name": "Default", "is_default": "slug" not in over, **over}
    return project_info(Project.objects.create(**given))


def record(
    project: ProjectInfo,
    *captures: Capture,
    now: datetime = NOW,
    caller: str = "owner",
    also: Callable[[tuple[Recorded, ...]], None] | None = None,
) -> tuple[Recorded, ...]:
    """Record calls in one batch."""
    return record_calls(project=project, captures=captures, caller=caller, now=now, also=also)


def prompt(tokens: int | None, **over: Any) -> Capture:
    """A call that reported a prompt of so many tokens, or no usage at all."""
    return make_capture(usage=None if tokens is None else {"prompt_tokens": tokens}, **over)


def conversation(project: ProjectInfo, name: str = "talk") -> Conversation:
    """The stored row."""
    return Conversation.objects.get(project_id=project.id, name=name)


def storing(work: Callable[[], Result]) -> Result:
    """In a thread that stores, with its own connection."""

    def run() -> Result:
        use_own_connection()
        try:
            return work()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as threads:
        return threads.submit(run).result()


def at_once(jobs: Sequence[Callable[[], Result]]) -> list[Result]:
    """Run the jobs in threads that start together; raises what any of them raised."""
    barrier = threading.Barrier(len(jobs))

    def run(job: Callable[[], Result]) -> Result:
        barrier.wait()
        try:
            return job()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(jobs)) as pool:
        return [future.result() for future in [pool.submit(run, job) for job in jobs]]


@contextmanager
def somebody_else() -> Iterator[psycopg.Connection[Any]]:
    """A connection to this test's database beside Django's. PostgreSQL."""
    url = os.environ["DATABASE_URL"].rsplit("/", 1)[0] + f"/{connection.settings_dict['NAME']}"
    with closing(psycopg.connect(url)) as other:
        yield other


@contextmanager
def reading(table: str, *, seconds: float) -> Iterator[None]:
    """Somebody else has a table open for so long. PostgreSQL."""
    with somebody_else() as other:
        other.execute(f"SELECT count(*) FROM {table}".encode())
        timer = threading.Timer(seconds, other.rollback)
        timer.start()
        yield
        timer.join()
