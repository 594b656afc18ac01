"""The list of published figures on the budgets page: what it would fill in, on, and off again."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from helmdash.core.access.permissions import SHELL
from helmdash.core.budgets.learned_windows import WindowBy
from helmdash.core.budgets.levels import Level
from helmdash.core.budgets.published import PublishedFigures
from helmdash.operations.budgets.lines import store_own_edit
from helmdash.operations.budgets.shipped import load_budgets
from helmdash.operations.rollups.folding import fold_all
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.budgets import budgets
from helmdash.queries.line_edits import own_edit
from helmdash.records.models import Budget
from tests.factories import make_capture, record

_PAGE, _SWITCH = "/budgets/", "/budgets/published/"
_MODEL = "perplexity/sonar-pro"


@pytest.fixture
def known() -> PublishedFigures:
    """What the list says of the model, whatever the newest list is."""
    found = budgets.published_list().find(_MODEL)
    assert found is not None
    assert found.context_length is not None
    return found


@pytest.fixture
def ruled(project: ProjectInfo) -> ProjectInfo:
    load_budgets(update=True)
    return project


def _call(project: ProjectInfo, name: str) -> Level:
    """Record a call of 100,000 tokens of input and 50,000 of output."""
    at = timezone.now() - timedelta(minutes=10)
    usage = {"prompt_tokens": 100_000, "completion_tokens": 50_000}
    call = make_capture(id=name, model=_MODEL, usage=usage, started_at=at, conversation=name)
    (recorded,) = record(call, project=project)
    fold_all()
    return recorded.health.level


def _text(client: Client, address: str = _PAGE) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return " ".join(answer.getvalue().decode().split())


def test_the_list_is_offered_used_and_stopped(
    owner: Client, viewer: Client, ruled: ProjectInfo, known: PublishedFigures
) -> None:
    assert 'id="published"' not in _text(owner)  # of models that nobody uses
    assert _call(ruled, "grey") is Level.UNKNOWN
    assert known.context_length is not None

    shown = _text(owner)
    assert "1 has no known window, so that their level is unknown, and 1 has no prices" in shown
    assert f"{known.context_length:,}" in shown
    assert "Use the list" in shown
    assert "Use the list" not in _text(viewer)
    assert viewer.post(_SWITCH, {"do": "on"}).status_code == 403
    owner.post(_SWITCH, {"do": "on"})

    assert "Stop using the list" in _text(owner)
    assert _call(ruled, "judged") is Level.HEALTHY
    assert "the list of what vendors publish" in _text(owner, f"{_PAGE}?model={_MODEL}")
    assert known.input_cost_usd_per_mtok is not None
    assert known.output_cost_usd_per_mtok is not None
    cost = known.input_cost_usd_per_mtok / 10 + known.output_cost_usd_per_mtok / 20
    assert f"{cost:.2f}" in _text(owner, "/calls/judged/")
    owner.post(_SWITCH, {"do": "off"})

    assert "Use the list" in _text(owner)
    assert _call(ruled, "again") is Level.UNKNOWN
    assert Budget.objects.filter(project=ruled.id, key="").count() == 1


def test_the_list_rules_one_project_and_comes_after_its_rows(
    owner: Client, ruled: ProjectInfo, known: PublishedFigures
) -> None:
    owner.post(_SWITCH, {"do": "on"})
    table = budgets.table(project_id=ruled.id)
    assert table.lookup(_MODEL).limit_tokens == known.context_length
    assert budgets.table(project_id=None).lookup(_MODEL).limit_tokens is None

    Budget.objects.create(
        project_id=ruled.id,
        key=_MODEL,
        input_tokens=9_000,
        output_tokens=500,
        tier="B",
        input_cost_usd_per_mtok=1.5,
        output_cost_usd_per_mtok=2.5,
    )

    found = budgets.table(project_id=ruled.id).lookup(_MODEL)
    assert (found.limit_tokens, found.limit_source) == (9_000, "budget")
    assert (found.input_cost_usd_per_mtok, found.output_cost_usd_per_mtok) == (1.5, 2.5)


def test_whatever_else_is_asked_changes_nothing(owner: Client, ruled: ProjectInfo) -> None:
    assert owner.get(_SWITCH).headers["Location"].endswith("#published")
    owner.post(_SWITCH, {"do": "perhaps"})

    assert not Budget.objects.filter(project=ruled.id).exists()


def test_the_panel_of_a_grey_call_tells_of_the_published_window(
    owner: Client, ruled: ProjectInfo, known: PublishedFigures
) -> None:
    _call(ruled, "grey")
    panel = "/budgets/of-call/grey/"

    assert f"publishes a window of {known.context_length:,} tokens" in _text(owner, panel)
    owner.post(_SWITCH, {"do": "on"})

    assert "publishes a window" not in _text(owner, panel)


def test_what_is_so_already_is_not_stored_again(owner: Client, ruled: ProjectInfo) -> None:
    """A row that is saved as it is would be confirmed, and its ceiling an operator's."""
    owner.post(_SWITCH, {"do": "off"})
    assert not Budget.objects.filter(project=ruled.id).exists()

    for _ in range(2):
        owner.post(_SWITCH, {"do": "on"})

    assert Budget.history.filter(project=ruled.id).count() == 1
    assert budgets.table(project_id=ruled.id).row_of("").window_by is WindowBy.SHIPPED


def test_a_line_is_drawn_in_a_published_window_and_a_lower_ceiling_leaves_it(
    owner: Client, ruled: ProjectInfo, known: PublishedFigures
) -> None:
    _call(ruled, "grey")
    owner.post(_SWITCH, {"do": "on"})
    window = known.context_length or 0
    panel = {"do": "save", "caution": "", "critical": f"{window - 20_000}", "window": f"{window}"}

    assert owner.post("/budgets/of-call/grey/", panel).status_code == 302

    found = budgets.table(project_id=ruled.id).lookup(_MODEL)
    assert (found.limit_tokens, found.critical_max_tokens) == (window, window - 20_000)
    Budget.objects.filter(project=ruled.id).exclude(key="").delete()
    edit = own_edit(
        project_id=ruled.id, model=_MODEL, model_key=_MODEL, changes={"input_tokens": 90_000}
    )
    store_own_edit(actor=SHELL, project_id=ruled.id, edit=edit)
    found = budgets.table(project_id=ruled.id).lookup(_MODEL)
    assert (found.limit_tokens, found.input_tokens) == (window, 90_000)
