"""Every rule that decides says in what it decided which version it was."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from helmdash import core
from helmdash.core.rules import CALL_RULES, CARE_RULES, PLAN_RULES, rule_set
from helmdash.operations.database import rule_sets
from helmdash.operations.rollups import folding
from helmdash.queries import plans
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.calls import calls
from helmdash.queries.evidence.limits import limits_of_model
from helmdash.records.models import (
    Call,
    Conversation,
    Fit,
    Guidance,
    PlanRecord,
    RollupState,
    Round,
    RuleSet,
)
from tests.factories import NOW, make_capture
from tests.operations.care_support import Talk
from tests.planning.telling import Replies, steps, tell
from tests.recording.support import make_ruled_project, record


@pytest.fixture
def project(db: None) -> ProjectInfo:
    """One that keeps texts: without them a fit keeps nothing to be made again from."""
    return make_ruled_project(payload="full")


def declared() -> Iterator[tuple[str, object]]:
    """Every constant of core that is called a version, however deep, private ones too."""
    for found in pkgutil.walk_packages(core.__path__, f"{core.__name__}."):
        for name, value in vars(importlib.import_module(found.name)).items():
            if name.endswith("VERSION") and isinstance(value, str | int):
                yield name, value


def stored(project: ProjectInfo, model: str) -> set[object]:
    """Every version that some row tells, of any kind; what is learned of a model names its methods,
    as suggestions keep them."""
    told: set[object] = set()
    for table in (Call, Guidance, PlanRecord):
        for row in table.objects.select_related("rules"):
            assert row.rules is not None, row
            told.update(row.rules.versions.values())
    for trim in Fit.objects.values_list("trim", flat=True):
        told.update(trim["versions"].values())
    told.update(trace[0] for trace in Conversation.objects.values_list("trace", flat=True) if trace)
    told.update(care["v"] for care in Round.objects.values_list("care", flat=True) if care)
    told.update(inputs["v"] for inputs in Fit.objects.values_list("inputs", flat=True) if inputs)
    told.update(RollupState.objects.values_list("version", flat=True))
    learned = limits_of_model(project_id=project.id, model=model, now=NOW)
    told.update(each.method for each in learned.items)
    return told


def test_every_version_in_core_is_stored_with_what_it_decided(project: ProjectInfo) -> None:
    talk = Talk(project)
    for tokens in (20_000, 110_000, 110_000, 120_000):
        talk.turn(tokens)
    tell(project, Replies([steps("web.scrape")]))

    folding.fold_all()

    told = stored(project, Call.objects.latest("id").model)
    versions = set(declared())
    assert len(versions) >= 30
    assert {name for name, value in versions if value not in told} == set()


def test_a_call_and_a_plan_show_the_rules_of_their_day(project: ProjectInfo) -> None:
    record(project, make_capture(id="now"))
    record(project, make_capture(id="before"))
    older = rule_set({**CALL_RULES.versions, "causes": "causes-1"})
    RuleSet.objects.create(number=older.number, versions=older.versions)
    Call.objects.filter(name="before").update(rules_id=older.number)
    made = tell(project, Replies([steps("web.scrape")]))

    shown = {name: calls.find(project_id=project.id, call_id=name) for name in ("now", "before")}
    plan = plans.find(project_id=project.id, plan_id=made.plan_id, now=NOW)

    assert shown["now"] is not None
    assert shown["now"].rules == CALL_RULES.versions
    assert shown["before"] is not None
    assert shown["before"].rules == {**CALL_RULES.versions, "causes": "causes-1"}
    assert plan is not None
    assert plan.rules == PLAN_RULES.versions


@pytest.mark.django_db(transaction=True)
def test_what_a_number_stands_for_is_written_once_and_with_the_row() -> None:
    project = make_ruled_project()

    with transaction.atomic():
        record(project, make_capture(id="undone"))
        transaction.set_rollback(True)
    assert not RuleSet.objects.exists()

    record(project, make_capture(id="first"))
    with CaptureQueriesContext(
        connection,
    ) as queries:
        record(project, make_capture(id="second"))

    assert RuleSet.objects.get().versions == CALL_RULES.versions
    assert not [query["sql"] for query in queries if "ruleset" in query["sql"]]

    rule_sets.forget()
    for rules in (CALL_RULES, CARE_RULES, PLAN_RULES):
        rule_sets.keep(rules)

    sets = {row.number: row.versions for row in RuleSet.objects.all()}
    assert sets == {each.number: each.versions for each in (CALL_RULES, CARE_RULES, PLAN_RULES)}


def test_what_a_number_stands_for_comes_back_where_it_was_lost(
    project: ProjectInfo, django_capture_on_commit_callbacks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the server that had it, before another one did."""
    with django_capture_on_commit_callbacks(execute=True):
        record(project, make_capture(id="first"))
    RuleSet.objects.all().delete()
    record(project, make_capture(id="second"))
    assert not RuleSet.objects.exists()

    monkeypatch.setattr(rule_sets, "_AGAIN_S", 0.0)
    record(project, make_capture(id="third"))

    assert RuleSet.objects.get().versions == CALL_RULES.versions


def test_the_number_follows_from_the_versions_alone() -> None:
    one = rule_set({"causes": "causes-4", "cuts": "cuts-1"})

    assert one.number == rule_set({"cuts": "cuts-1", "causes": "causes-4"}).number
    assert one.number != rule_set({"cuts": "cuts-1", "causes": "causes-5"}).number
    assert 0 <= one.number < 2**31
