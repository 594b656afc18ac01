"""The fix loop: what today's budget says of a recorded prompt, and moving its lines on the spot."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from helmdash.core.access.permissions import SHELL
from helmdash.core.budgets.health import HealthReason
from helmdash.operations.budgets.editing import change_budget
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.budgets import budgets
from helmdash.records.models import Budget, Call, Conversation
from tests.factories import make_capture, record
from tests.pages.hygiene import faults

PANEL, OF_CALL = "/budgets/of-conversation/talk/", "/budgets/of-call/one/"
PAGES = ("/conversations/talk/", "/calls/one/")


@pytest.fixture
def red(project: ProjectInfo) -> ProjectInfo:
    """A conversation of one call, caution by the shipped row: 105,000 of 128,000 tokens."""
    usage = {"prompt_tokens": 105_000}
    record(make_capture(id="one", usage=usage), project=project)
    record(make_capture(id="other", conversation="other"), project=project)
    return project


def edit_globally(project: ProjectInfo, **changes: int) -> None:
    budget_id = budgets.table(project_id=project.id).lookup("openai/gpt-4o").budget_id
    assert budget_id is not None
    change_budget(actor=SHELL, budget_id=budget_id, project_id=project.id, changes=changes)


def test_a_page_says_where_todays_budget_judges_otherwise(owner: Client, red: ProjectInfo) -> None:
    before = [owner.get(path).content.decode() for path in PAGES]

    edit_globally(red, optimal_max_tokens=50_000, critical_max_tokens=90_000)
    after = [owner.get(path).content.decode() for path in PAGES]

    assert not any("With today" in html for html in before)
    for html in after:
        said = html.split("With today", 1)[1].split("</p>", 1)[0]
        assert "Critical" in said
        assert "edited by the command line" in said
        assert faults(html) == []
    Conversation.objects.update(level_reason=HealthReason.SUSPECTED_CUT.value)
    assert "With today" not in owner.get(PAGES[0]).content.decode()


def test_lists_say_where_todays_budget_judges_otherwise(owner: Client, red: ProjectInfo) -> None:
    def rows() -> list[str]:
        html = [owner.get(path).content.decode() for path in ("/", "/conversations/")]
        assert not any(faults(each) for each in html)
        return [
            row
            for each in html
            for row in each.split("<tr>")
            if "/conversations/talk/" in row.split("</tr>", 1)[0]
        ]

    before = rows()
    edit_globally(red, optimal_max_tokens=110_000, critical_max_tokens=115_000)
    after = rows()

    # Needs attention, recent, and the list.
    assert len(before) == len(after) == 3
    assert not any("by today&#x27;s budget" in row for row in before)
    for row in after:
        level, _, today = row.split("</td>", 1)[0].partition('<span class="sub">')
        assert "Caution" in level
        assert "Healthy</span> by today&#x27;s budget" in today


@pytest.mark.parametrize("panel", [PANEL, OF_CALL])
def test_lines_are_tried_out_and_saved_for_the_project_alone(
    owner: Client, red: ProjectInfo, panel: str
) -> None:
    lines = {"caution": "110000", "critical": "120000", "window": "128000"}

    opened = owner.get(panel)
    tried = owner.post(panel, {**lines, "do": "preview"})
    kept = list(Budget.objects.filter(project_id=red.id))
    saved = owner.post(panel, {**lines, "do": "save"})

    assert (opened.status_code, faults(opened.content.decode())) == (200, [])
    # Who opened it by a key goes on in it.
    assert re.findall(r"autofocus[^>]*id=\"(\w+)", opened.content.decode()) == ["id_caution"]
    html = tried.content.decode()
    assert (tried.status_code, faults(html), kept) == (200, [], [])
    assert "1 would be healthy instead of caution" in html
    assert saved["Location"].split("?")[0] in PAGES
    row = Budget.objects.get(project_id=red.id)
    assert (row.key, row.optimal_max_tokens, row.critical_max_tokens) == (
        *("openai/gpt-4o", 110_000),
        120_000,
    )
    assert "With today" in owner.get(saved["Location"]).content.decode()
    owner.post(panel, {**lines, "caution": "", "do": "save"})
    row = Budget.objects.get(project_id=red.id)
    assert row.optimal_max_tokens is None
    assert not Call.objects.exclude(level__in=["healthy", "caution"]).exists()


@pytest.mark.parametrize(
    "told",
    [
        {"server_window": 32_768},
        {
            "http_status": 400,
            "error_message": "This model's maximum context length is 32768 tokens. You sent 40000.",
        },
    ],
)
@pytest.mark.parametrize("model", ["nemo", "ollama/tiny"])
def test_lines_start_from_the_window_in_force(
    owner: Client, project: ProjectInfo, model: str, told: dict[str, object]
) -> None:
    """From the fallback's 16,000 a caution of 20,000 was refused, on a page that said critical
    29,491; saved untouched, they turned the conversation red."""
    record(make_capture(id="before", conversation="other", model=model, **told), project=project)
    record(make_capture(id="one", model=model, usage={"prompt_tokens": 18_000}), project=project)

    opened = owner.get(PANEL).content.decode()
    tried = owner.post(PANEL, {"caution": "20000", "window": "32768", "do": "preview"})
    owner.post(PANEL, {"window": "32768", "do": "save"})

    assert re.findall(r'name="window"[^>]*value="(\d*)"', opened) == ["32768"]
    for html in (opened, tried.content.decode()):
        assert re.search(r"critical above\s+29,491, limit\s+32,768", html)
    today = budgets.table(project_id=project.id).lookup(model)
    assert (today.limit_tokens, today.limit_source) == (32_768, "context_length")
    # The light answers to an edit at once, whoever told the window it was judged by.
    owner.post(PANEL, {"caution": "10000", "critical": "12000", "window": "32768", "do": "save"})
    for path in PAGES:
        said = owner.get(path).content.decode().split("With today", 1)[1].split("</p>", 1)[0]
        assert "Critical" in said
    # Of this model alone, whose window it is.
    assert Budget.objects.get(project_id=project.id).key == model


WRONG = [
    ({"caution": "0"}, "Caution above, tokens</strong>: give 1 or more"),
    ({"caution": "x"}, "Caution above, tokens</strong>: write a whole number"),
    ({"caution": "9" * 12}, "Caution above, tokens</strong>: give 1000000000 or less"),
    ({"critical": "200000"}, "is above the limit"),
    ({"caution": "119000", "critical": "100"}, "must be below"),
]


@pytest.mark.parametrize(("lines", "said"), WRONG)
def test_lines_that_make_no_sense_are_told_and_not_saved(
    owner: Client, red: ProjectInfo, lines: dict[str, str], said: str
) -> None:
    sent = {"window": "128000", **lines}

    for do in ("preview", "save"):
        answer = owner.post(PANEL, {**sent, "do": do})
        assert (answer.status_code, said in answer.content.decode()) == (422, True)
    as_script = owner.post(PANEL, {**sent, "do": "preview"}, headers={"HX-Request": "true"})
    assert as_script.status_code == 200
    assert not Budget.objects.filter(project_id=red.id).exists()


def test_a_model_of_the_fallback_gets_a_row_of_its_own(owner: Client, project: ProjectInfo) -> None:
    record(make_capture(model="newvendor/atlas-1"), project=project)

    owner.post(PANEL, {"window": "64000", "do": "save"})

    assert Budget.objects.get(project_id=project.id).key == "newvendor/atlas-1"
    assert "With today" in owner.get(PAGES[0]).content.decode()
