"""The inbox of suggestions on the budgets page."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape

import pytest
from django.test import Client
from django.utils import timezone

from helmdash.core.access.permissions import SHELL
from helmdash.operations.budgets.lines import store_own_edit
from helmdash.operations.evidence import trialling
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.budgets import budgets
from helmdash.queries.line_edits import own_edit
from helmdash.records.models import Suggestion
from tests.factories import NOW, make_capture, make_suggestion, record

_PAGE = "/budgets/"


def _text(client: Client, address: str = _PAGE) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return answer.getvalue().decode()


def test_a_suggestion_is_shown_with_its_calls_and_accepted(
    owner: Client, project: ProjectInfo
) -> None:
    one = make_suggestion(project=project)

    shown = _text(owner)

    assert "96% of 83 answers" in shown
    record(make_capture(id="small", started_at=NOW - timedelta(days=1)))

    answer = owner.post(f"/budgets/suggestions/{one.pk}/", {"do": "accept"})

    assert answer.status_code == 302
    row = budgets.table(project_id=project.id).row_of("openai/gpt-4o")
    assert row.input_tokens == 24_575
    again = _text(owner)
    assert "None yet. It takes" in again
    assert f"/admin/records/budget/{row.budget_id}/history/" in again
    # What came of it leads to the calls of both sides.
    one.refresh_from_db()
    effect = {"before": {"calls": 2, "clean": 2}, "after": {"calls": 1, "clean": 1}}
    assert one.effect is not None
    assert one.decided_at is not None
    Suggestion.objects.filter(pk=one.pk).update(effect={**one.effect, **effect})
    record(make_capture(id="after", started_at=one.decided_at + timedelta(minutes=15)))
    told = re.findall(r'href="([^"]+)">100 %</a> of <a href="([^"]+)">1 call</a>', _text(owner))
    for since in told[0]:
        assert "/calls/after/" in _text(owner, unescape(since))
        assert "/calls/small/" not in _text(owner, unescape(since))
    assert "outcome%3Aclean" in told[0][0]


def test_many_suggestions_leave_the_rows_in_reach(owner: Client, project: ProjectInfo) -> None:
    for number in range(8):
        make_suggestion(project=project, model=f"m{number}", model_key=f"m{number}")

    first, more = _text(owner).split("3 more suggestions", 1)

    in_table = re.compile(r'<a class="id" href="/budgets/\?model=(m\d)')
    assert len(in_table.findall(first)) == 5
    assert len(in_table.findall(more)) == 3
    assert sorted(in_table.findall(first + more)) == [f"m{number}" for number in range(8)]


@pytest.mark.parametrize("model", ["nemo", "ollama/tiny"])
def test_an_accepted_figure_leaves_the_window_that_a_server_told(
    owner: Client, project: ProjectInfo, model: str
) -> None:
    """The row that the edit made had the ceiling of the one it was made from as its window: 16,000
    of the fallback, 3,072 of every other model of Ollama."""
    record(make_capture(model=model, server_window=32_768), project=project)
    one = make_suggestion(
        project=project,
        model=model,
        model_key=model,
        figure="chars_per_token",
        changes={"chars_per_token": 3.1},
        today={"chars_per_token": 4.0},
    )

    owner.post(f"/budgets/suggestions/{one.pk}/", {"do": "accept"})

    table = budgets.table(project_id=project.id)
    after = table.lookup(model)
    assert (after.chars_per_token, after.limit_tokens) == (3.1, 32_768)
    assert table.lookup("ollama/another").chars_per_token == 4.0


@pytest.mark.parametrize(
    ("model", "figure", "value", "told"),
    [
        # Of the fallback's figures, which say nothing of the window until one of them is edited.
        ("acme/zed", "chars_per_token", 3.1, (None, None)),
        ("acme/zed", "input_tokens", 24_575, ("24,575 tokens", 24_575)),
        ("acme/zed", "context_length", 32_768, (None, 32_768)),  # the figure says it
        # A row governs it, and a server told its window: both limits stay.
        ("openai/gpt-4o", "chars_per_token", 3.1, (None, 128_000)),
        ("openai/gpt-4o", "input_tokens", 24_575, (None, 128_000)),
        ("nemo", "chars_per_token", 3.1, (None, 32_768)),
    ],
)
def test_a_suggestion_says_beforehand_which_limit_its_model_will_have(
    owner: Client,
    project: ProjectInfo,
    model: str,
    figure: str,
    value: float,
    told: tuple[str | None, int | None],
) -> None:
    words, limit = told
    record(make_capture(model="nemo", server_window=32_768), project=project)
    today = getattr(budgets.table(project_id=project.id).row_of(model), figure)
    one = make_suggestion(
        project=project,
        model=model,
        model_key=model,
        figure=figure,
        changes={figure: value},
        today={figure: today},
    )

    shown = _text(owner)
    owner.post(f"/budgets/suggestions/{one.pk}/", {"do": "accept"})

    assert budgets.table(project_id=project.id).lookup(model).limit_tokens == limit
    assert ("it has none today" in shown) == (words is not None)
    if words is not None:
        assert f"a row of its own with {words}" in shown
        assert "?key=acme%2Fzed" in shown


def test_one_click_takes_an_accepted_edit_back(owner: Client, project: ProjectInfo) -> None:
    one = make_suggestion(project=project)
    address = f"/budgets/suggestions/{one.pk}/"
    before = budgets.table(project_id=project.id).lookup("openai/gpt-4o")
    owner.post(address, {"do": "revert"})
    assert "has no edit to take back" in _text(owner)
    owner.post(address, {"do": "accept"})
    assert 'value="revert"' in _text(owner)

    owner.post(address, {"do": "revert"})

    assert budgets.table(project_id=project.id).lookup("openai/gpt-4o") == before
    one.refresh_from_db()
    assert (one.state, one.reason) == ("dismissed", "the edit was reverted")
    shown = _text(owner)
    assert "Reverted: the budget of openai/gpt-4o" in shown
    assert 'value="revert"' not in shown


def test_what_was_edited_again_since_is_not_taken_back(owner: Client, project: ProjectInfo) -> None:
    one = make_suggestion(project=project)
    address = f"/budgets/suggestions/{one.pk}/"
    owner.post(address, {"do": "accept"})
    edit = own_edit(
        project_id=project.id,
        model="openai/gpt-4o",
        model_key="openai/gpt-4o",
        changes={"input_tokens": 30_000},
    )
    store_own_edit(actor=SHELL, project_id=project.id, edit=edit)

    owner.post(address, {"do": "revert"})

    assert "cannot be edited so" in _text(owner)
    assert budgets.table(project_id=project.id).lookup("openai/gpt-4o").input_tokens == 30_000
    one.refresh_from_db()
    assert one.state == "accepted"


def test_a_dismissal_takes_a_reason(owner: Client, project: ProjectInfo) -> None:
    one = make_suggestion(project=project)
    address = f"/budgets/suggestions/{one.pk}/"

    owner.post(address, {"do": "dismiss"})
    assert "reason: write why" in _text(owner)
    owner.post(address, {"do": "dismiss", "reason": "a test"})
    owner.post(address, {"do": "accept"})

    shown = _text(owner)
    assert "a test" in shown
    assert "dismissed already by owner" in shown
    assert Suggestion.objects.get().state == "dismissed"
    assert owner.post("/budgets/suggestions/999999/", {"do": "accept"}).status_code == 404
    assert owner.get(address).headers["Location"].endswith("#suggestions")


def test_what_a_budget_cannot_be_is_said(owner: Client, project: ProjectInfo) -> None:
    """By the rules of budgets: the suggestion stays."""
    one = make_suggestion(
        project=project,
        changes={"output_tokens": 0},
        today={"output_tokens": 4_000},
        figure="output_tokens",
    )

    owner.post(f"/budgets/suggestions/{one.pk}/", {"do": "accept"})

    assert "The budget cannot be edited so" in _text(owner)
    assert Suggestion.objects.get().state == "open"


@pytest.mark.one_database
def test_who_only_reads_decides_nothing(viewer: Client, project: ProjectInfo) -> None:
    make_suggestion(project=project)

    assert "96% of 83 answers" in _text(viewer)
    assert "Accept" not in _text(viewer)


def test_what_is_learned_stands_under_the_budget(owner: Client, project: ProjectInfo) -> None:
    record(make_capture(id="only", conversation=None, started_at=timezone.now()))

    shown = _text(owner, "/budgets/?model=openai/gpt-4o")

    assert "What recorded calls show" in shown
    assert "49 more calls are needed" in shown
    (calls, *_) = re.findall(r'href="(/calls/[^"]+)">1</a>', shown)
    assert "/calls/only/" in _text(owner, calls.replace("&amp;", "&"))


def test_a_suggestion_is_tried_and_its_arms_are_shown_with_their_calls(
    owner: Client, project: ProjectInfo
) -> None:
    one = make_suggestion(project=project, made_at=timezone.now())

    answer = owner.post(f"/budgets/suggestions/{one.pk}/", {"do": "trial", "share": "50"})

    assert answer.status_code == 302
    assert "Its calls are counted within a minute" in _text(owner)
    table = budgets.table(project_id=project.id)
    for number in range(40):
        record(
            make_capture(
                id=f"call-{number}", conversation=f"talk-{number}", started_at=timezone.now()
            )
        )
    trialling.look(now=timezone.now())
    shown = " ".join(_text(owner).split())
    assert "50% of the conversations" in shown
    assert "95 % interval" in shown
    talks = dict(re.findall(r'href="(/conversations/\?trial=[^"]+)">(\d+)<', shown))
    assert sum(map(int, talks.values())) == 40
    for address, count in talks.items():
        names = re.findall(r'href="/conversations/(talk-\d+)/', _text(owner, address))
        assert len(set(names)) == int(count)
    listed = dict(re.findall(r'href="(/calls/\?trial=[^"]+)">(\d+)<', shown))
    assert sum(map(int, listed.values())) == 40
    for address, count in listed.items():
        found = set(
            re.findall(r'href="/calls/(call-\d+)/', _text(owner, address.replace("&amp;", "&")))
        )
        rules = (table.for_conversation(name.replace("call", "talk")) for name in found)
        ruled = (each.lookup("openai/gpt-4o").trial for each in rules)
        assert len(found) == int(count)
        assert {each.arm.value for each in ruled if each} == {
            "today" if "today" in address else "suggested"
        }


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"share": "95"}, "share"),
        ({"days": "0"}, "days"),
        ({"conversations": "7"}, "conversations"),
    ],
)
def test_a_trial_has_bounds(
    owner: Client, project: ProjectInfo, given: dict[str, str], said: str
) -> None:
    one = make_suggestion(project=project)

    answer = owner.post(f"/budgets/suggestions/{one.pk}/", {"do": "trial", **given}, follow=True)

    assert said in answer.content.decode()
    assert Suggestion.objects.get().state == "open"
