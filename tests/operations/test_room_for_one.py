"""Where there is room for one more, one of those who come at once gets it."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth import get_user_model
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from helmdash.core.access.permissions import SHELL
from helmdash.core.alerts.channels import ChannelKind
from helmdash.core.alerts.rules import RuleKind
from helmdash.operations.access.keys import AccessError, create_key
from helmdash.operations.database.sqlite_file import thread_connection
from helmdash.operations.demo.loading import (
    DemoBusy,
    DemoTaken,
    NoDemo,
    load_demo,
    remove_demo,
)
from helmdash.operations.evidence import trialling
from helmdash.operations.saved_views import save_view
from helmdash.operations.whatif import asking
from helmdash.queries.access.access import ProjectInfo
from helmdash.records.models import Project
from tests.factories import NOW, make_project, make_suggestion
from tests.operations.alert_support import channel, rule
from tests.recording.support import make_ruled_project

EDIT = {"key": "openai/gpt-4o", "changes": {"input_tokens": 9_000}}
# What counts rows of a project before it adds one -> the table that it counts.
MAKES: dict[str, Callable[[ProjectInfo], object]] = {
    "whatif": lambda project: asking.ask(
        actor=SHELL, project_id=project.id, edits=[EDIT], title="", since=None, until=None, now=NOW
    ),
    "alertchannel": lambda project: channel(project, ChannelKind.SLACK),
    "alertrule": lambda project: rule(project, RuleKind.SILENCE, enabled=False),
    "trial": lambda project: trialling.begin(
        actor=SHELL,
        project_id=project.id,
        suggestion_id=make_suggestion(project=project).pk,
        now=NOW,
    ),
    "savedview": lambda project: save_view(
        actor=SHELL,
        user_id=get_user_model().objects.create_user("vera").pk,
        project_id=project.id,
        noun="calls",
        name="mine",
        address="",
        is_shared=False,
    ),
}
on_postgres = pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has one writer")


@on_postgres
@pytest.mark.parametrize("table", MAKES)
def test_rows_are_counted_by_one_at_a_time(db: None, table: str) -> None:
    project = make_ruled_project()
    with CaptureQueriesContext(connection) as ran:
        MAKES[table](project)

    told = [query["sql"] for query in ran]
    locks = [n for n, sql in enumerate(told) if "FOR NO KEY UPDATE" in sql]
    counts = [
        n for n, sql in enumerate(told) if f'COUNT(*) AS "__count" FROM "records_{table}' in sql
    ]
    assert locks
    assert locks[0] < counts[0]


@on_postgres
def test_of_two_keys_of_a_name_the_second_is_told(transactional_db: None) -> None:
    make_project()

    def make() -> str:
        with thread_connection():
            try:
                return create_key(actor=SHELL, name="mine").name
            except AccessError as error:
                return str(error)

    with ThreadPoolExecutor(1) as beside:
        with transaction.atomic():
            create_key(actor=SHELL, name="mine")
            second = beside.submit(make)
            _wait_for_a_lock()
        assert second.result(20) == "name: an active key is called mine; revoke it first"


def _wait_for_a_lock() -> None:
    ends = time.monotonic() + 20
    with connection.cursor() as cursor:
        while time.monotonic() < ends:
            cursor.execute("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)")
            if cursor.fetchone() == (True,):
                return
            time.sleep(0.01)
    raise AssertionError("nobody waits")


def test_demo_data_is_changed_by_one_at_a_time(db: None) -> None:
    class Stop(Exception):
        pass

    def meanwhile(_step: str, _done: int, _of: int) -> None:
        with pytest.raises(DemoBusy):
            remove_demo(actor=SHELL)
        raise Stop

    with pytest.raises(Stop):
        load_demo(actor=SHELL, now=timezone.now(), progress=meanwhile)

    # What was made of it is a part, which goes.
    assert remove_demo(actor=SHELL)


def test_of_demo_data_only_others_are_called_others(db: None) -> None:
    ours = Project.objects.create(slug="demo", name="Ours")
    with pytest.raises(DemoTaken, match="short name"):
        load_demo(actor=SHELL, now=NOW)
    ours.delete()

    def refused(_step: str, _done: int, _of: int) -> None:
        raise IntegrityError("a mistake of ours")

    def removed(_step: str, _done: int, _of: int) -> None:
        Project.objects.filter(slug="demo").delete()
        raise IntegrityError("no such project")

    with pytest.raises(IntegrityError, match="ours"):
        load_demo(actor=SHELL, now=NOW, progress=refused)
    with pytest.raises(NoDemo):
        load_demo(actor=SHELL, now=NOW, progress=removed)
