from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.fitting import catalog
from helmdash.records.models import CatalogRevision
from tests.admin.forms import text_of

LIST = "/admin/records/catalogrevision/"
ADD = LIST + "add/"
BODY = {"packs": [{"name": "grep", "description": "Finds text."}], "pipelines": []}


def sent(project: ProjectInfo, **over: Any) -> dict[str, Any]:
    form = {"project": project.id, "name": "main", "text": json.dumps(BODY), "make_current": "on"}
    return {**form, **over}


def test_a_pasted_catalog_is_the_one_in_force(operator: Client, project: ProjectInfo) -> None:
    operator.post(ADD, sent(project))

    current = catalog.find(project_id=project.id)
    assert current is not None
    assert (current.name, current.number, current.packs) == ("main", 1, 1)
    page = text_of(operator.get(LIST))
    assert "main r1" in page


def test_a_file_becomes_the_next_revision_and_the_same_bytes_none(
    operator: Client, project: ProjectInfo
) -> None:
    operator.post(ADD, sent(project))
    more = {"packs": [*BODY["packs"], {"name": "sed"}]}
    file = SimpleUploadedFile("catalog.json", b"\xef\xbb\xbf" + json.dumps(more).encode())

    operator.post(ADD, sent(project, text="", file=file))
    again = operator.post(ADD, sent(project, text=json.dumps(more)), follow=True)

    numbers = CatalogRevision.objects.order_by("number").values_list("number", flat=True)
    assert list(numbers) == [1, 2]
    assert "The same catalog is there already, as main r2" in text_of(again)


def test_a_catalog_can_be_stored_without_being_put_in_force(
    operator: Client, project: ProjectInfo
) -> None:
    operator.post(ADD, sent(project))
    other = sent(project, name="other")
    del other["make_current"]

    operator.post(ADD, other)

    current = catalog.find(project_id=project.id)
    assert current is not None
    assert current.name == "main"
    assert catalog.find(project_id=project.id, name="other") is not None


@pytest.mark.parametrize(
    ("over", "field", "sentence"),
    [
        # nothing at all
        ({"text": ""}, "file", "Give a file or paste the text"),
        # both
        ({"file": b"{}"}, "file", "one of them"),
        # no JSON
        ({"text": "{packs:"}, "text", "This is not JSON"),
        # no object
        ({"text": "[]"}, "text", "catalog must be an object"),
        # an entry without a name
        ({"text": '{"packs": [{}]}'}, "text", "catalog.packs.0.name must be a non-blank string"),
        # the same name twice
        ({"text": '{"packs": [{"name": "a"}, {"name": "a"}]}'}, "text", "already used by packs.0"),
        # a number JSON does not have
        ({"text": '{"packs": [], "x": NaN}'}, "text", "cannot carry"),
        # deeper than anybody means
        ({"text": "[" * 100_000}, "text", "nested too deeply"),
        # one level more than can be given back, on every Python
        ({"text": '{"x":' * 201 + "1" + "}" * 201}, "text", "nested too deeply"),
        # what is no revision: nothing to choose from, and what is not stored
        ({"text": '{"packs": [], "pipelines": []}'}, "text", "no pack and no pipeline"),
        ({"text": '{"packs": [{"name": "a\\u0000"}]}'}, "text", "U+0000"),
        # a number that Python does not read
        ({"text": '{"packs": [], "x": %s}' % ("9" * 5_000)}, "text", "thousands of digits"),
        # not UTF-8
        ({"text": "", "file": b"\xff\xfe{}"}, "file", "in UTF-16 or UTF-32; save it in UTF-8"),
        ({"text": "", "file": b'{"\xff": 1}'}, "file", "not UTF-8, byte 3 is none"),
    ],
)
def test_a_faulty_catalog_is_explained_beside_its_field(
    operator: Client, project: ProjectInfo, over: dict[str, Any], field: str, sentence: str
) -> None:
    form = sent(project, **over)
    if isinstance(form.get("file"), bytes):
        form["file"] = SimpleUploadedFile("catalog.json", form["file"])

    response = operator.post(ADD, form)

    assert list(response.context["adminform"].form.errors) == [field]
    assert sentence in text_of(response)
    assert not CatalogRevision.objects.exists()


def test_a_revision_shows_its_content_and_can_be_neither_changed_nor_deleted(
    operator: Client, project: ProjectInfo
) -> None:
    operator.post(ADD, sent(project))
    row = CatalogRevision.objects.get()

    page = text_of(operator.get(f"{LIST}{row.pk}/change/"))

    assert "Finds text." in page
    assert row.digest in page
    assert operator.post(f"{LIST}{row.pk}/change/", {"name": "x"}).status_code == 403
    assert operator.post(f"{LIST}{row.pk}/delete/", {"post": "yes"}).status_code == 403
