"""Who is told of which exporter: its name, what waits for it and what went wrong."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from helmdash.records.models import Exporter
from tests.access.cast import House, browser, key_of

pytestmark = pytest.mark.django_db

PEOPLE = {
    "viewer": {"shared", "own"},
    "owner": {"shared", "own"},
    "other_owner": {"theirs"},
    "superuser": {"shared", "own", "theirs"},
}
KEYS = {
    "read": {"shared", "own"},
    "admin": {"shared", "own", "theirs"},
    "all_elsewhere": {"theirs"},
    "admin_elsewhere": {"theirs"},
}


@pytest.fixture
def house(full_house: House) -> House:
    """With an exporter of each project, and one that gets every project's calls."""
    Exporter.objects.all().delete()
    projects = {"shared": None, "own": full_house.project.id, "theirs": full_house.other.id}
    for name, project_id in projects.items():
        url = f"https://{name}.test"
        Exporter.objects.create(name=f"to-{name}", url=url, project_id=project_id, enabled=False)
    return full_house


def named(text: str) -> set[str]:
    return set(re.findall(r"\bto-(shared|own|theirs)\b", text))


@pytest.mark.parametrize("who", PEOPLE)
def test_the_recorders_page_names_those_of_the_readers_project(house: House, who: str) -> None:
    page = browser(who, house).get("/settings/recorder/")

    assert named(page.content.decode()) == PEOPLE[who]


@pytest.mark.parametrize("who", KEYS)
def test_metrics_name_those_of_the_keys_project(house: House, who: str) -> None:
    bearer = {"Authorization": f"Bearer {key_of(who, house)}"}
    told = Client().get("/metrics", headers=bearer).content.decode()

    assert named(told) == KEYS[who]
