"""The pages of what-ifs: asked by a form without scripts, followed to calls and fits, applied."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from helmdash.core.access.permissions import MemberRole
from helmdash.operations.whatif import running
from helmdash.queries.access.access import ProjectInfo
from helmdash.records.models import Budget, WhatIf
from tests.factories import make_suggestion, sign_in
from tests.operations.test_fit_replay import MODEL, fit
from tests.operations.test_whatif import PROMPTS, project, talk
from tests.pages.hygiene import faults

__all__ = ["project"]

PATH = "/budgets/what-if/"


@pytest.fixture
def editor(project: ProjectInfo) -> Client:
    return sign_in("ed", project=project, role=MemberRole.EDITOR)


def form(*lines: tuple[str, str, str], **more: str) -> dict[str, Any]:
    keys, figures, values = zip(*lines, strict=True)
    return {"key": keys, "figure": figures, "value": values, "range": "all", "do": "ask", **more}


def text(response: Any) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", response.content.decode()).split())


def test_a_question_is_asked_answered_followed_and_applied(
    project: ProjectInfo, editor: Client
) -> None:
    talk(project, *PROMPTS)
    fit(project)
    data = form(
        (MODEL, "context_length", "50,000"),
        (MODEL, "input_tokens", "40000"),
        ("", "max_catalog_bytes", "500"),
        ("", "", ""),
        title="Half",
    )

    asked: Any = editor.post(PATH, data)
    assert asked.status_code == 302
    page = editor.get(asked.url)
    assert "Waits for a server" in text(page)
    running.run_all(lambda words, done, of: None)
    page = editor.get(asked.url)

    assert "Done" in text(page)
    assert faults(page.content.decode()) == []
    addresses = set(re.findall(r'href="([^"]*/items/[^"]*)"', page.content.decode()))
    assert len(addresses) > 5
    figures = re.compile(r"(?s)</header>.*?</thead>(.*?)</tbody>")
    for part in ("fits", "models"):
        section = page.content.decode().split(f'aria-labelledby="{part}"')[1]
        counts = figures.search(section)
        assert counts is not None
        unlinked = re.findall(r'class="num"[^>]*>\s*([1-9][\d,]*)', counts[1])
        assert unlinked == [], part
    for address in addresses:
        items = editor.get(address.replace("&amp;", "&"))
        assert items.status_code == 200
        assert faults(items.content.decode()) == []
        assert re.search(r'data-row href="/(calls|trims)/', items.content.decode())
    beside = editor.get(f"{asked.url}&beside={WhatIf.objects.get().name}")
    assert beside.status_code == 200
    applied = editor.post(f"{asked.url.partition('?')[0]}act/", {"do": "apply"}, follow=True)
    assert "Applied" in text(applied)
    assert Budget.objects.get(key=MODEL).input_tokens == 40_000
    again = editor.post(f"{asked.url.partition('?')[0]}act/", {"do": "apply"}, follow=True)
    assert "applied it already" in text(again)


@pytest.mark.parametrize(
    ("lines", "more", "said"),
    [
        ([("", "", "")], {}, "name at least one row"),
        ([(MODEL, "", "1")], {}, "choose a figure"),
        ([(MODEL, "input_tokens", "")], {}, "write its new value"),
        ([(MODEL, "input_tokens", "many")], {}, "must be a number"),
        ([(MODEL, "enabled", "perhaps")], {}, "write yes or no"),
        ([(MODEL, "input_tokens", "5")], {"range": "soon"}, "range: "),
        ([(MODEL, "input_tokens", "5")], {"title": "nul\x00"}, "title: "),
        ([("nul\x00", "input_tokens", "5")], {}, "no NUL"),
        ([(MODEL, "fallback_model", "a\x00b")], {}, "no NUL"),
        ([(MODEL, "critical_max_tokens", "999999999")], {}, "is above the limit"),
    ],
)
def test_what_is_wrong_is_said_beside_what_was_typed(
    editor: Client, lines: Any, more: dict[str, str], said: str
) -> None:
    answer = editor.post(PATH, form(*lines, **more))

    assert answer.status_code == 422
    assert said in text(answer)
    assert faults(answer.content.decode()) == []


def test_figures_are_called_as_people_call_them(project: ProjectInfo, editor: Client) -> None:
    form = editor.get("/budgets/what-if/").content.decode()

    offered = dict(re.findall(r'<option value="(\w+)"[^>]*>([^<]+)</option>', form))
    assert offered["input_cost_usd_per_mtok"] == "input, USD per million tokens"
    assert offered["critical_max_tokens"] == "critical above, tokens"
    assert [words for words in offered.values() if "_" in words or "mtok" in words] == []


def test_what_leads_here_fills_the_form(project: ProjectInfo, editor: Client) -> None:
    number = make_suggestion(project=project).pk
    budgets = editor.get("/budgets/").content.decode()
    assert f"{PATH}?suggestion={number}" in budgets

    filled = editor.get(f"{PATH}?suggestion={number}").content.decode()
    lines = editor.get(f"{PATH}?model={MODEL}&context_length=9000").content.decode()

    assert 'value="24575"' in filled
    assert 'value="9000"' in lines
    assert editor.get(f"{PATH}?suggestion=x&like=y").status_code == 200
    more = editor.post(PATH, form((MODEL, "input_tokens", "7"), do="more"))
    assert (more.status_code, more.content.count(b'name="key"')) == (200, 6)


def test_a_viewer_reads_and_asks_nothing(project: ProjectInfo) -> None:
    viewer = sign_in("v", project=project, role=MemberRole.VIEWER)

    assert viewer.get(PATH).status_code == 200
    assert viewer.post(PATH, form((MODEL, "input_tokens", "7"))).status_code == 403
