"""The OpenAPI document and the page made from it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import pytest
from django.test import Client
from jsonschema import Draft202012Validator

from helmdash.api.openapi.document import document
from helmdash.api.problems import Code
from tests.api.conftest import PREFIX, Door
from tests.support.browser import BrowserPage
from tests.support.processes import run_python
from tests.support.server import Served


def _operations() -> Iterator[dict[str, Any]]:
    for methods in document()["paths"].values():
        yield from methods.values()


def _walk(value: object) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from _walk(inner)
    if isinstance(value, list):
        for inner in value:
            yield from _walk(inner)


def test_the_document_is_open_and_has_an_etag() -> None:
    response = Client().get(f"{PREFIX}/openapi.json")

    assert response.status_code == 200
    assert response.json()["openapi"] == "3.1.0"
    again = Client().get(f"{PREFIX}/openapi.json", headers={"If-None-Match": response["ETag"]})
    assert again.status_code == 304


def test_who_asks_for_it_first_together_with_others_gets_it() -> None:
    """In a process of its own: elsewhere it is made by now."""
    code = """
import django
django.setup()
from concurrent.futures import ThreadPoolExecutor
import sys
from helmdash.api import api
from helmdash.api.openapi.document import document
sys.setswitchinterval(1e-5)
with ThreadPoolExecutor(8) as pool:
    found = [each.result() for each in [pool.submit(document) for _ in range(8)]]
assert all(each is found[0] for each in found)
"""
    env = {**os.environ, "DJANGO_SETTINGS_MODULE": "helmdash.settings"}
    done = run_python("-c", code, env=env, timeout=60)

    assert done.returncode == 0, done.stderr[-2_000:]


def test_every_reference_leads_somewhere() -> None:
    schemas = document()["components"]["schemas"]

    for part in _walk(document()):
        if isinstance(part.get("$ref"), str):
            assert part["$ref"].removeprefix("#/components/schemas/") in schemas


def test_every_schema_is_one() -> None:
    for schema in document()["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)


def test_every_body_has_an_example_that_its_schema_accepts() -> None:
    bodies = [o["requestBody"]["content"]["application/json"] for o in _operations()
              if "requestBody" in o]  # fmt: skip
    assert len(bodies) == 21

    for body in bodies:
        schema = {**body["schema"], "components": document()["components"]}
        assert body["examples"]
        for example in body["examples"].values():
            Draft202012Validator(schema).validate(example["value"])


def test_every_example_of_an_answer_is_one() -> None:
    contents = [
        content
        for operation in _operations()
        for answer in operation["responses"].values()
        for content in answer.get("content", {}).values()
        if "example" in content
    ]
    assert len(contents) == 8

    for content in contents:
        schema = {**content["schema"], "components": document()["components"]}
        Draft202012Validator(schema).validate(content["example"])


def test_every_operation_says_what_it_does_and_what_can_go_wrong() -> None:
    for operation in _operations():
        assert operation["summary"]
        assert operation["tags"]
        statuses = set(operation["responses"])
        assert {"401", "422", "500", "503"} <= statuses
        assert ("403" in statuses) is bool(operation["x-scope"])
        assert ({"400", "413", "415"} <= statuses) is ("requestBody" in operation)


def test_the_shapes_of_the_answers_are_the_documented_ones(owner: Door) -> None:
    """One real answer of each kind against its schema; schemathesis sees many more."""
    owner.post("/calls", {"id": "a", "model": "m", "conversation": "c"})
    for path in ("/calls", "/calls/{call_id}", "/conversations/{conversation_id}", "/budgets",
                 "/conversations/{conversation_id}/timeline", "/context-budgets", "/my-plans",
                 "/plans"):  # fmt: skip
        operation = document()["paths"][PREFIX + path]["get"]
        schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
        answer = owner.get(path.format(call_id="a", conversation_id="c"))
        validator = Draft202012Validator({**schema, "components": document()["components"]})
        validator.validate(answer.json())


class _Targets(HTMLParser):
    """The ids and the inner links of a page, and what it loads."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.inline: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.ids += [given["id"] or ""] if "id" in given else []
        href = given.get("href") or ""
        self.links += [href[1:]] if href.startswith("#") else []
        if tag == "style" or "style" in given or any(name.startswith("on") for name in given):
            self.inline.append(tag)


def _page() -> tuple[str, _Targets]:
    text = Client().get(f"{PREFIX}/docs").content.decode()
    targets = _Targets()
    targets.feed(text)
    return text, targets


def test_the_page_shows_every_operation_and_shape() -> None:
    text, targets = _page()

    for operation in _operations():
        assert operation["operationId"] in targets.ids
    for path in document()["paths"]:
        assert path in text
    for name in document()["components"]["schemas"]:
        assert f"shape-{name}" in targets.ids


def test_every_link_of_the_page_leads_somewhere_once() -> None:
    _, targets = _page()

    assert set(targets.links) <= set(targets.ids)
    assert len(targets.ids) == len(set(targets.ids))


def test_every_problem_has_a_place_its_type_leads_to() -> None:
    _, targets = _page()

    assert {code.value for code in Code} <= set(targets.ids)


def test_the_page_has_nothing_inline_and_nothing_from_elsewhere() -> None:
    text, targets = _page()

    assert targets.inline == []
    assert re.findall(r"""(?:src|href)=["'](?:https?:)?//""", text) == []


@pytest.mark.browser
def test_the_page_renders_clean(served: Served, browser_page: BrowserPage) -> None:
    browser_page.goto(f"{served.base_url}{PREFIX}/docs")

    assert browser_page.locator("h1").inner_text().startswith("The API")
    assert browser_page.locator("article").count() == len(list(_operations()))
    assert browser_page.problems() == []
    assert browser_page.accessibility() == []
    browser_page.set_viewport_size({"width": 320, "height": 700})
    assert browser_page.evaluate("document.documentElement.scrollWidth") <= 320
