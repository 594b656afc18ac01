from __future__ import annotations

import pytest
from django.test import Client

from helmdash.core.access.permissions import SHELL
from helmdash.operations.fitting.catalogs import import_catalog
from helmdash.queries.access.access import ProjectInfo
from helmdash.records.models import Project
from tests.admin.forms import filled, text_of
from tests.admin.house import make_project, record
from tests.factories import NOW

LIST = "/admin/records/project/"
CATALOG = {"packs": [{"name": "grep"}]}


def change(project: ProjectInfo) -> str:
    return f"{LIST}{project.id}/change/"


def delete(project: ProjectInfo) -> str:
    return f"{LIST}{project.id}/delete/"


def test_the_mark_of_the_default_project_moves_and_there_is_always_one(
    operator: Client, project: ProjectInfo
) -> None:
    other = make_project(slug="other")

    operator.post(change(other), filled(operator, change(other), is_default="on"))
    assert list(Project.objects.filter(is_default=True)) == [Project.objects.get(slug="other")]
    operator.post(change(other), filled(operator, change(other), is_default=None))

    assert Project.objects.get(is_default=True).slug == "other"


def test_a_new_project_may_take_the_mark(operator: Client) -> None:
    sent = filled(operator, LIST + "add/", slug="new", name="New", is_default="on")

    operator.post(LIST + "add/", sent)

    assert Project.objects.get(is_default=True).slug == "new"


def test_only_own_catalogs_can_be_in_force(operator: Client, project: ProjectInfo) -> None:
    other = make_project(slug="other")
    own = import_catalog(actor=SHELL, project_id=project.id, name="own", body=CATALOG, now=NOW)
    foreign = import_catalog(
        actor=SHELL, project_id=other.id, name="foreign", body=CATALOG, now=NOW
    )
    sent = filled(operator, change(project), current_catalog=foreign.revision_id)

    response = operator.post(change(project), sent)

    assert list(response.context["adminform"].form.errors) == ["current_catalog"]
    assert Project.objects.get(pk=project.id).current_catalog_id == own.revision_id


@pytest.mark.parametrize(
    ("slug", "over", "sentence"),
    [
        # the one every key falls back to
        ("default", {}, "The default project cannot be deleted"),
        # loaded and removed as a whole
        ("demo", {"is_demo": True}, "demo remove"),
        # with records in it
        ("busy", {}, "holds recorded calls"),
    ],
)
def test_projects_that_are_needed_say_why_they_stay(
    operator: Client, project: ProjectInfo, slug: str, over: dict[str, object], sentence: str
) -> None:
    kept = project if slug == "default" else make_project(slug=slug, **over)
    if slug == "busy":
        record(project=kept)

    response = operator.post(delete(kept), {"post": "yes"}, follow=True)

    assert sentence in text_of(response)
    assert Project.objects.filter(pk=kept.id).exists()


def test_an_empty_project_can_be_deleted(operator: Client) -> None:
    other = make_project(slug="other")

    operator.post(delete(other), {"post": "yes"})

    assert not Project.objects.filter(pk=other.id).exists()


def test_demo_data_is_only_looked_at(operator: Client) -> None:
    demo = make_project(slug="demo", is_demo=True)

    assert operator.get(change(demo)).status_code == 200
    assert operator.post(change(demo), {"name": "mine"}).status_code == 403


def test_what_is_kept_of_prompts_is_explained(operator: Client, project: ProjectInfo) -> None:
    page = text_of(operator.get(change(project)))

    assert "Off: no prompt and no answer is stored" in page
    assert "deleted by retain" in page


def test_own_patterns_are_lines_and_bad_ones_are_named(operator: Client) -> None:
    project = make_project(slug="mine", redaction_patterns=["old"])
    address = change(project)
    assert ">\nold</textarea>" in operator.get(address).content.decode()

    bad = operator.post(address, filled(operator, address, redaction_patterns="ok\n(a+)+b"))
    assert "too many ways" in bad.content.decode()
    good = filled(operator, address, redaction_patterns=" EMP-\\d+ \n\nACME\n", text_days=7)
    operator.post(address, good)

    row = Project.objects.get(slug="mine")
    assert (row.redaction_patterns, row.text_days) == (["EMP-\\d+", "ACME"], 7)
    operator.post(address, filled(operator, address, redaction_patterns=""))
    row.refresh_from_db()
    assert row.redaction_patterns is None


def test_lists_do_not_send_scripts_that_no_form_uses(
    operator: Client, project: ProjectInfo
) -> None:
    for table in ("records/project", "auth/user"):
        html = operator.get(f"/admin/{table}/").content.decode()

        assert "admin/js/actions" in html
        assert [name for name in ("xregexp", "urlify", "prepopulate.") if name in html] == []
