"""Pages that are opened at once: a gateway's client has its answer before its call is stored."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from helmdash.operations.recorder import Recorder, facade
from helmdash.queries.access.access import ProjectInfo
from tests.factories import make_capture, make_project


@pytest.fixture
def project(transactional_db: None) -> ProjectInfo:
    """Committed, so that the recorder's thread sees it."""
    return make_project()


@pytest.fixture
def recorder(project: ProjectInfo) -> Iterator[Recorder]:
    """That of this process, while it runs."""
    facade.recorder.cache_clear()
    facade.recorder().start()
    yield facade.recorder()
    facade.recorder().stop()
    facade.recorder.cache_clear()


@pytest.mark.parametrize("page", ["/calls/{}/", "/conversations/{}/"])
def test_a_call_has_its_page_and_its_conversation_another_at_once(
    project: ProjectInfo, recorder: Recorder, page: str
) -> None:
    person = Client()
    person.force_login(User.objects.create_superuser("owner"))
    found = []

    for number in range(5):
        name = f"just-answered-{number}"
        recorder.begin(name, project.id)
        capture = make_capture(id=name, conversation=name)
        recorder.submit(project, "owner", capture, timezone.now())
        found.append(person.get(page.format(name)).status_code)

    assert found == [200] * 5
