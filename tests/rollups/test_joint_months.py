"""Calls of two filters: the same as those picked from all, and where the two never meet, none are
looked at."""

from __future__ import annotations

from datetime import timedelta
from itertools import product
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from helmdash.operations.rollups.folding import fold_all
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.calls import listing as call_listing
from helmdash.queries.calls.filters import CallFilters
from helmdash.records.models import Call, Rollup, RollupState, UncountedCalls
from tests.factories import NOW, make_capture
from tests.recording.support import CRITICAL, HEALTHY, make_ruled_project, record

COLUMNS = {each: each for each in ("level", "cause", "finish_reason", "purpose")}
COLUMNS |= {"client": "client_name", "model": "model_key"}
# What calls of each month are like, the oldest month first: no two months have the same pairs.
KINDS: tuple[tuple[dict[str, Any], ...], ...] = (
    (
        {
            "usage": {"prompt_tokens": CRITICAL},
            "finish_reason": "length",
            "purpose": "plan",
            "model": "anthropic/claude",
        },
        {"http_status": 429, "status": "error", "finish_reason": None, "usage": None},
    ),
    ({"usage": {"prompt_tokens": HEALTHY}, "purpose": "chat"},),
    (
        {"usage": {"prompt_tokens": CRITICAL}, "purpose": "chat", "client_name": "codex"},
        {"http_status": 504, "status": "error", "usage": None, "client_name": "codex"},
    ),
)
STATES = ("folded", "waiting", "both", "not counted yet")


@pytest.fixture(params=STATES)
def project(db: None, request: pytest.FixtureRequest) -> ProjectInfo:
    """Calls of three months, in rollups, about to be, or from before there were any."""
    made = make_ruled_project()
    for months, kinds in enumerate(reversed(KINDS)):
        at = NOW - timedelta(days=31 * months)
        record(
            made,
            *(
                make_capture(id=f"{months} {number}", started_at=at, **kind)
                for number, kind in enumerate(kinds)
            ),
        )
        if request.param == "folded" or (request.param == "both" and months == 0):
            fold_all()
    if request.param == "not counted yet":
        UncountedCalls.objects.all().delete()
        Rollup.objects.all().delete()
        RollupState.objects.update_or_create(project_id=made.id, defaults={"is_complete": False})
    return made


def _found(project: ProjectInfo, **over: Any) -> set[str]:
    filters = CallFilters(**over)
    return {item.id for item in call_listing.page(project_id=project.id, filters=filters).items}


def _values(project: ProjectInfo, column: str) -> set[str]:
    told = Call.objects.filter(project_id=project.id).values_list(column, flat=True)
    others = {"nobody has it", *(["any"] if column == "cause" else [])}
    return {each for each in told if each} | others


def _fits(row: Call, asked: dict[str, str]) -> bool:
    told = {name: getattr(row, COLUMNS[name]) for name in asked}
    return all(
        told[name] == value or ((name, value) == ("cause", "any") and told[name])
        for name, value in asked.items()
    )


def test_two_filters_find_what_fits_both(project: ProjectInfo) -> None:
    rows = list(Call.objects.filter(project_id=project.id))
    assert len({tuple(getattr(row, each) for each in COLUMNS.values()) for row in rows}) == 5
    since = NOW - timedelta(days=40)
    tried = 0
    for one, other in product(COLUMNS, COLUMNS):
        if one >= other:
            continue
        for values in product(_values(project, COLUMNS[one]), _values(project, COLUMNS[other])):
            asked = dict(zip((one, other), values, strict=True))
            fitting = [row for row in rows if _fits(row, asked)]
            tried += bool(fitting)

            assert _found(project, **asked) == {row.name for row in fitting}, asked
            if not fitting:
                continue
            assert _found(project, **asked, since=since, until=NOW + timedelta(days=1)) == {
                row.name for row in fitting if row.started_at >= since
            }, asked
            assert _found(project, **asked, until=since) == {
                row.name for row in fitting if row.started_at < since
            }, asked
    assert tried > len(rows)


def test_filters_that_never_meet_look_at_no_call(db: None) -> None:
    project = make_ruled_project()
    plain = make_capture(usage={"prompt_tokens": CRITICAL}, purpose="plan")
    record(project, plain, make_capture(model="anthropic/claude", purpose="plan"))
    record(project, make_capture(http_status=504, status="error", usage=None, purpose="chat"))
    (failed,) = Call.objects.exclude(cause="")

    for folded, asked in product(
        (False, True),
        (
            {"level": "critical", "cause": failed.cause},
            {"level": "critical", "cause": "any"},
            {"model": "anthropic/claude", "cause": "any"},
        ),
    ):
        if folded:
            fold_all()
        with CaptureQueriesContext(connection) as queries:
            found = _found(project, **asked)

        assert found == set()
        said = [query["sql"] for query in queries.captured_queries]
        # A model's keys are asked for first.
        assert len(said) == 2 + 2 * ("model" in asked)
        assert not any('ORDER BY "records_call"."started_at"' in each for each in said)
