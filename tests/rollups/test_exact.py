"""Rollups are what the calls come to, whatever happened, in whatever order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import orjson
import pytest
from django.db import transaction
from django.db.models import QuerySet
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from helmdash.core.access.permissions import SHELL
from helmdash.core.budgets.levels import Level
from helmdash.core.calls.capture import SentSizes
from helmdash.core.calls.lanes import Lane
from helmdash.core.calls.routes import CallRoute
from helmdash.core.rollups.figures import (
    ADDED,
    Counts,
    Distribution,
    Facts,
    Key,
    Marginal,
    add,
    add_places,
    added_after,
    apart,
    distribution,
    tally,
)
from helmdash.core.rollups.periods import Width, period_of
from helmdash.operations.care.clearing import clear
from helmdash.operations.fitting.fits import insert_fit
from helmdash.operations.planning import fail_plan
from helmdash.operations.retention.erasing import erase_conversation
from helmdash.operations.retention.expired import delete_expired
from helmdash.operations.rollups import folding, noting
from helmdash.operations.rollups.rebuilding import Rebuilt, rebuild, rebuild_some
from helmdash.queries import rollups
from helmdash.queries.access.access import ProjectInfo, project_info
from helmdash.queries.budgets.budgets import forget_cache
from helmdash.queries.conversations import conversations
from helmdash.queries.database.sizes import row_counts
from helmdash.records.models import (
    Budget,
    Call,
    Conversation,
    Fit,
    PlanRecord,
    Project,
    Rollup,
    RollupState,
    UncountedCalls,
)
from helmdash.records.rollups.call_facts import facts_of, load_changes
from helmdash.records.rollups.fit_facts import fit_facts_of
from helmdash.records.rollups.plan_facts import plan_facts_of
from helmdash.records.rollups.rollup_keys import key_text
from helmdash.records.rollups.rollup_rows import COLUMN_OF, Slot, read_periods
from tests.factories import NOW, make_capture
from tests.plan_rows import make_plan
from tests.recording.support import make_ruled_project, record

# Minutes before the last: in one quarter-hour, in one hour, over days and over the end of a month.
_AGES = st.sampled_from([0, 1, 2, 14, 20, 59, 200, 1_500, 5 * 1_440, 9 * 1_440])
_CALLS = st.fixed_dictionaries(
    {
        "id": st.sampled_from([None, "a", "b", "c", "d"]),
        "conversation": st.sampled_from([None, "one", "two"]),
        "model": st.sampled_from(["openai/gpt-4o", "GPT-4o", "acme/tiny"]),
        # What no database stores is counted as it is stored.
        "prompt_variant": st.sampled_from([None, "full\x00steps", "\ud800"]),
        "purpose": st.sampled_from(["chat", "plan", "route", "summarise"]),
        "usage": st.sampled_from(
            [None, {"prompt_tokens": 120_000, "completion_tokens": 7}, {"prompt_tokens": 900}]
        ),
        "latency_ms": st.sampled_from([None, 3, 999, 100_000]),
        "sent": st.sampled_from([None, SentSizes(bytes=5_000)]),
        "lane": st.sampled_from([None, Lane.SIDE]),
        "fit_id": st.sampled_from([None, "fit-1", "fit-2"]),
        # A second telling by another door changes what was counted.
        "routes": st.sampled_from([(), (CallRoute.GATEWAY,), (CallRoute.TRANSCRIPT,)]),
        "age": _AGES,
    }
)


_FITS = st.fixed_dictionaries(
    {
        "model": st.sampled_from(["openai/gpt-4o", "acme/tiny"]),
        "caller": st.sampled_from(["owner", "a\x00b"]),
        "steps": st.lists(
            st.tuples(st.sampled_from(["tags", "examples"]), st.integers(1, 3), st.integers(1, 99)),
            max_size=3,
        ),
        "fits": st.booleans(),
    }
)


class _Crash(Exception):
    pass


def _capture(given: dict[str, Any]) -> Any:
    rest = {name: value for name, value in given.items() if name != "age"}
    return make_capture(**rest, started_at=NOW - timedelta(minutes=given["age"]))


def _fit(project: ProjectInfo, name: str, age: int = 0, **given: Any) -> None:
    steps = given.get("steps", ())
    insert_fit(
        {
            "project_id": project.id,
            "name": name,
            "model": given.get("model", "acme/tiny"),
            "intent": "",
            "intent_sha": "0" * 16,
            "catalog_name": "",
            "catalog_digest": "0" * 64,
            "before_bytes": 9_000,
            "after_bytes": 9_000 - sum(saved for *_, saved in steps),
            "fits": given.get("fits", True),
            "trim": {
                "steps": [
                    {"label": label, "entries": entries, "bytes_saved": saved}
                    for label, entries, saved in steps
                ]
            },
            "budget": {},
            "caller": given.get("caller", "owner"),
            "created_at": NOW - timedelta(minutes=age),
        }
    )


def _plans(project: ProjectInfo) -> QuerySet[PlanRecord]:
    """Those that are over: only these are counted."""
    return PlanRecord.objects.filter(project_id=project.id).exclude(outcome="running")


def _every_width(facts: Iterable[Facts]) -> dict[Slot, Counts]:
    """What all rollups have to be, by another way than folding."""
    slots: dict[Slot, Counts] = {}
    for (quarter, marginal, key), counts in tally((None, each) for each in facts).items():
        for width in Width:
            slot = Slot(marginal.value, width.value, period_of(width, quarter), key_text(key))
            add(slots.setdefault(slot, {}), counts)
    return slots


def _stored(project: ProjectInfo) -> dict[Slot, Counts]:
    """Rollups with what waits beside them."""
    waiting = [
        change
        for text in UncountedCalls.objects.filter(project_id=project.id).values_list(
            "changes", flat=True
        )
        for change in load_changes(text)
    ]
    slots = _every_width(())
    for (quarter, marginal, key), counts in tally(waiting).items():
        for width in Width:
            slot = Slot(marginal.value, width.value, period_of(width, quarter), key_text(key))
            add(slots.setdefault(slot, {}), counts)
    for width in Width:
        rows = read_periods(project_id=project.id, width=width, first=-(2**62), end=2**62)
        for slot, (_, counts) in rows.items():
            assert counts
            add(slots.setdefault(slot, {}), counts)
    return {slot: counts for slot, counts in slots.items() if counts}


class Story(RuleBasedStateMachine):
    """A project whose calls come late, twice, go, and are cut short by crashes."""

    made = 0

    def __init__(self) -> None:
        super().__init__()
        Story.made += 1
        self.project = make_ruled_project(slug=f"p{Story.made}", name="P", retention_days=7)
        self.retired: list[Facts] = []
        self.fits = 0
        self.plans = 0

    @rule(calls=st.lists(_CALLS, min_size=1, max_size=4), crashes=st.booleans())
    def report(self, calls: list[dict[str, Any]], crashes: bool) -> None:
        """Late and out of order, some of them repeats."""
        with suppress(_Crash), transaction.atomic():
            record(self.project, *map(_capture, calls), now=NOW)
            if crashes:
                raise _Crash

    @rule(given=_FITS, age=_AGES, crashes=st.booleans())
    def fit(self, given: dict[str, Any], age: int, crashes: bool) -> None:
        with suppress(_Crash), transaction.atomic():
            _fit(self.project, f"fit-{self.fits + 1}", age, **given)
            if crashes:
                raise _Crash
            self.fits += 1

    @rule(
        outcome=st.sampled_from(["running", "ok", "gap"]),
        kind=st.sampled_from(["plan", "route"]),
        took=st.sampled_from([None, 3, 70_000]),
        age=_AGES,
        crashes=st.booleans(),
    )
    def plan(self, outcome: str, kind: str, took: int | None, age: int, crashes: bool) -> None:
        with suppress(_Crash), transaction.atomic():
            make_plan(
                self.project,
                f"plan-{self.plans + 1}",
                kind=kind,
                outcome=outcome,
                latency_ms=took,
                started_at=NOW - timedelta(minutes=age),
            )
            if crashes:
                raise _Crash
            self.plans += 1

    @rule(number=st.integers(1, 3))
    def give_up_a_plan(self, number: int) -> None:
        """One that has ended already keeps its end."""
        fail_plan(
            project_id=self.project.id, plan_id=f"plan-{number}", sentence="It broke off.", now=NOW
        )

    @rule(facts=st.sampled_from([3, 999, 70_000]))
    def learn_more_of_a_call(self, facts: int) -> None:
        """What enriching a call does: the row and its figures change in one transaction."""
        row = Call.objects.filter(project_id=self.project.id).order_by("-id").first()
        if row is None:
            return
        with transaction.atomic():
            mine = Call.objects.filter(pk=row.pk)
            (old,) = facts_of(mine)
            mine.update(ttft_ms=facts, provider="openai")
            (new,) = facts_of(mine)
            noting.note(self.project.id, [(old, new)], now=NOW)

    @rule(groups=st.integers(1, 3), crashes=st.booleans())
    def fold(self, groups: int, crashes: bool) -> None:
        with suppress(_Crash), transaction.atomic():
            folding.fold(most_groups=groups)
            if crashes:
                raise _Crash

    @rule(name=st.sampled_from(["one", "two"]))
    def erase(self, name: str) -> None:
        erase_conversation(actor=SHELL, project=self.project, conversation=name, now=NOW)

    @rule()
    def retain(self) -> None:
        """The calls, fits and plans go, their figures stay."""
        line = NOW - timedelta(days=7)
        self.retired += facts_of(
            Call.objects.filter(project_id=self.project.id, started_at__lt=line)
        )
        self.retired += fit_facts_of(
            Fit.objects.filter(project_id=self.project.id, created_at__lt=line)
        )
        self.retired += plan_facts_of(_plans(self.project).filter(started_at__lt=line))
        delete_expired(actor=SHELL, project=self.project, now=NOW)

    @rule(tokens=st.sampled_from([50, 60_000]))
    def edit_a_budget(self, tokens: int) -> None:
        Budget.objects.filter(key="openai/gpt-4o").update(optimal_max_tokens=tokens)
        forget_cache()

    @rule(steps=st.sampled_from([1, 3, 99]), anew=st.booleans())
    def rebuild(self, steps: int, anew: bool) -> None:
        """All of it, or broken off after some quarter-hours."""
        gone: list[int | None] = []

        def stop(done: Rebuilt) -> None:
            gone.append(done.down_to)
            if len(gone) == steps:
                raise _Crash

        with suppress(_Crash):
            rebuild(actor=SHELL, project_id=self.project.id, progress=stop, anew=anew)

    @rule(
        marginal=st.sampled_from([Marginal.MODEL, Marginal.FIT_MODEL, Marginal.PLAN_MODEL]),
        since=st.none() | _AGES,
        until=st.none() | _AGES,
        second=st.sampled_from([0, 0, 7]),
        is_summed=st.booleans(),
    )
    def look(
        self,
        marginal: Marginal,
        since: int | None,
        until: int | None,
        second: int,
        is_summed: bool,
    ) -> None:
        """Any range is what its calls come to; where these are gone it is rounded outside."""
        start = None if since is None else NOW - timedelta(minutes=since, seconds=second)
        end = None if until is None else NOW - timedelta(minutes=until)
        found = rollups.figures(
            project_id=self.project.id,
            marginal=marginal,
            since=start,
            until=end,
            distributions=tuple(Distribution),
            is_summed=is_summed,
        )
        assert found is not None
        if not found.has_calls:
            return
        start, last = start or NOW - timedelta(days=99), end or NOW + timedelta(days=9)
        inside: list[Facts] = [
            *facts_of(
                Call.objects.filter(
                    project_id=self.project.id, started_at__range=(start, last)
                ).exclude(started_at=last)
            ),
            *fit_facts_of(
                Fit.objects.filter(
                    project_id=self.project.id, created_at__range=(start, last)
                ).exclude(created_at=last)
            ),
            *plan_facts_of(
                _plans(self.project)
                .filter(started_at__range=(start, last))
                .exclude(started_at=last)
            ),
        ]
        told: dict[Key, Counts] = {}
        add_places(told, tally(((None, each) for each in inside), only=marginal))
        assert found.totals() == told
        assert not found.is_rounded

    @invariant()
    def conversations_are_counted_by_their_levels(self) -> None:
        levels = Conversation.objects.filter(project_id=self.project.id).values_list(
            "level", flat=True
        )
        told = conversations.counters(project_id=self.project.id)
        assert {level.value: count for level, count in told.items() if count} == Counter(levels)

    @invariant()
    def what_is_stored_is_what_the_calls_come_to(self) -> None:
        calls = facts_of(Call.objects.filter(project_id=self.project.id))
        fits = fit_facts_of(Fit.objects.filter(project_id=self.project.id))
        plans = plan_facts_of(_plans(self.project))
        assert _stored(self.project) == _every_width([*calls, *fits, *plans, *self.retired])


def test_rollups_are_what_the_calls_come_to(db: None) -> None:
    Story.made = 0
    run_state_machine_as_test(
        Story,
        settings=settings(
            max_examples=14,
            stateful_step_count=14,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            # Drawing a step carries the one before out.
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )


@pytest.fixture
def project(db: None) -> ProjectInfo:
    return make_ruled_project()


def _fill(project: ProjectInfo, *, at: datetime = NOW) -> None:
    for hours in (0, 1, 30, 800):
        record(project, make_capture(started_at=at - timedelta(hours=hours)))


def test_rebuilding_puts_right_what_is_wrong(project: ProjectInfo) -> None:
    """Also rows that should not be there, and calls from before there were rollups."""
    _fill(project)
    folding.fold_all()
    right = _stored(project)
    Rollup.objects.filter(marginal="model").update(figures='{"n":7}')
    Rollup.objects.filter(marginal="level", width=Width.QUARTER.value).delete()
    Rollup.objects.filter(marginal="all", width=Width.DAY.value).delete()
    # A quarter-hour, and what is made of it, that no call was ever in.
    for width in Width:
        Rollup.objects.create(
            project_id=project.id,
            marginal="all",
            width=width.value,
            period=period_of(width, 1_000_000),
            key="[]",
            figures='{"n":1}',
        )

    done = rebuild(actor=SHELL, project_id=project.id, progress=lambda _: None)

    assert _stored(project) == right
    assert (done.calls, done.wrong > 0) == (4, True)
    again = rebuild(actor=SHELL, project_id=project.id, progress=lambda _: None)
    assert (again.calls, again.wrong) == (4, 0)


def test_what_is_removed_while_it_is_counted_ends_the_counting(project: ProjectInfo) -> None:
    """The demo is loaded anew or removed under it: other projects have their turn."""
    _fill(project)
    seen: list[Rebuilt] = []

    def remove(done: Rebuilt) -> None:
        seen.append(done)
        RollupState.objects.all().delete()

    rebuild(actor=SHELL, project_id=project.id, progress=remove)
    gone = rebuild(actor=SHELL, project_id=project.id + 100, progress=seen.append)

    assert len(seen) == 1
    assert (gone.calls, RollupState.objects.count()) == (0, 0)

    RollupState.objects.create(project_id=project.id, is_complete=False)
    assert rebuild_some(is_over=lambda: bool(RollupState.objects.all().delete()))
    assert not rebuild_some(is_over=lambda: True)


def test_after_an_upgrade_older_calls_are_counted_step_by_step(project: ProjectInfo) -> None:
    """While others record, and by several processes; what is reached is right at once."""
    _fill(project)
    Rollup.objects.all().delete()
    UncountedCalls.objects.all().delete()
    RollupState.objects.create(project_id=project.id, is_complete=False)
    record(project, make_capture(started_at=NOW - timedelta(hours=1.3)))
    reached: list[datetime] = []

    while rebuild_some(is_over=lambda: True):
        if len(reached) < 5:
            record(project, make_capture(started_at=NOW - timedelta(hours=40 * len(reached))))
        folding.fold(most_groups=1)
        (counting,) = rollups.countings()
        assert row_counts(project_id=project.id).calls == Call.objects.count()
        assert counting.down_to is not None
        reached.append(counting.down_to)
        inside = Call.objects.filter(project_id=project.id, started_at__gte=counting.down_to)
        for marginal in (Marginal.ALL, Marginal.MODEL):
            found = rollups.figures(
                project_id=project.id,
                marginal=marginal,
                since=counting.down_to,
                until=None,
                distributions=tuple(Distribution),
            )
            assert found is not None
            told = tally(((None, each) for each in facts_of(inside)), only=marginal)
            wanted: dict[Key, Counts] = {}
            add_places(wanted, told)
            assert found.totals() == wanted
        before = counting.down_to - timedelta(seconds=1)
        assert (
            rollups.figures(project_id=project.id, marginal=Marginal.ALL, since=before, until=None)
            is None
        )

    assert reached == sorted(set(reached), reverse=True)
    assert len(reached) >= 4
    assert rollups.countings() == ()
    calls = facts_of(Call.objects.filter(project_id=project.id))
    assert _stored(project) == _every_width(calls)


@pytest.mark.parametrize("version", [3, 5])
def test_what_was_not_counted_yet_is_counted_without_touching_the_rest(
    project: ProjectInfo, version: int
) -> None:
    _fill(project)
    for days in (0, 1, 40):
        make_plan(project, f"plan-{days}", days=days)
    folding.fold_all()
    right = _stored(project)
    missing = [each.value for each in added_after(version)]
    assert Rollup.objects.filter(marginal__in=missing).delete()[0]
    RollupState.objects.update(version=version)
    # What is wrong of the others stays for `rebuild_rollups`.
    wrong = Rollup.objects.filter(marginal=Marginal.LEVEL.value, width=Width.QUARTER.value)
    assert wrong.update(figures='{"n":7}')

    while rebuild_some(is_over=lambda: True):
        pass

    assert set(wrong.values_list("figures", flat=True)) == {'{"n":7}'}
    counted = {slot: told for slot, told in _stored(project).items() if slot.marginal in missing}
    assert counted == {slot: told for slot, told in right.items() if slot.marginal in missing}
    assert {slot.marginal for slot in counted} == set(missing)


def test_a_marginal_that_is_new_is_counted_while_the_others_are_told(project: ProjectInfo) -> None:
    _fill(project)
    _fit(project, "fit-1", age=60 * 24 * 70, steps=[("tags", 2, 40)])
    make_plan(project, days=50)
    folding.fold_all()
    right = _stored(project)
    new = [each.value for each in ADDED]
    assert Rollup.objects.filter(marginal__in=new).delete()[0]
    RollupState.objects.update(version=1)

    def known(marginal: Marginal) -> bool:
        found = rollups.figures(project_id=project.id, marginal=marginal, since=None, until=None)
        return found is not None

    assert {each for each in Marginal if not known(each)} == ADDED
    while rebuild_some(is_over=lambda: True):
        assert known(Marginal.MODEL)
    assert all(map(known, Marginal))
    assert _stored(project) == right


def test_what_retention_deleted_is_counted_until_it_is_too_old_itself(
    project: ProjectInfo,
) -> None:
    _fill(project)
    Project.objects.filter(pk=project.id).update(retention_days=10)
    kept = project_info(Project.objects.get(pk=project.id))
    delete_expired(actor=SHELL, project=kept, now=NOW)
    rebuild(actor=SHELL, project_id=project.id, progress=lambda _: None, anew=True)

    found = rollups.figures(project_id=project.id, marginal=Marginal.ALL, since=None, until=None)

    assert Call.objects.count() == 3
    assert found is not None
    assert (found.totals()[()]["n"], found.has_calls) == (4, False)
    assert row_counts(project_id=project.id).calls == 3
    record(kept, make_capture(started_at=NOW - timedelta(days=10)))
    assert row_counts(project_id=project.id).calls == 4
    cut = rollups.figures(
        project_id=project.id,
        marginal=Marginal.ALL,
        since=NOW - timedelta(hours=799.95),
        until=None,
    )
    assert cut is not None
    assert cut.is_rounded

    delete_expired(actor=SHELL, project=kept, now=NOW + timedelta(days=500))

    assert not Rollup.objects.exists()


def test_rows_of_before_distributions_were_apart_are_added_to(project: ProjectInfo) -> None:
    """All that was counted lies in `figures` there; what is not wanted is not told."""
    at = NOW - timedelta(hours=3)
    record(project, make_capture(started_at=at, latency_ms=40))
    folding.fold_all()
    right = _stored(project)
    for row in Rollup.objects.all():
        columns = [getattr(row, name) for name in COLUMN_OF.values()]
        for name in COLUMN_OF.values():
            setattr(row, name, None)
        whole = orjson.loads(row.figures)
        for told in columns:
            whole |= orjson.loads(told or "{}")
        row.figures = orjson.dumps(whole).decode()
        row.save()
    assert _stored(project) == right
    record(project, make_capture(started_at=at, latency_ms=41))
    for is_folded in (False, True):
        if is_folded:
            folding.fold_all()
        for wanted in ((), (Distribution.LATENCY_MS,)):
            found = rollups.figures(
                project_id=project.id,
                marginal=Marginal.ALL,
                since=NOW - timedelta(days=1),
                until=NOW,
                distributions=wanted,
            )
            assert found is not None
            counts = found.totals()[()]
            assert counts["n"] == 2
            assert set(apart(counts)[1]) == set(wanted)
            if wanted:
                assert distribution(counts, Distribution.LATENCY_MS) == {40: 1, 41: 1}


def test_a_cleared_conversation_stands_at_no_level(project: ProjectInfo) -> None:
    record(project, make_capture(conversation="one", usage={"prompt_tokens": 900}))
    folding.fold_all()
    assert conversations.counters(project_id=project.id)[Level.HEALTHY] == 1

    clear(actor=SHELL, project=project, conversation="one", now=NOW)

    for _ in range(2):
        told = conversations.counters(project_id=project.id)
        assert (told[Level.HEALTHY], told[Level.UNKNOWN]) == (0, 1)
        folding.fold_all()
