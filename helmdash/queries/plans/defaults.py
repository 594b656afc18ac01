"""What a caller uses most, and how it likes it: learned from its plans and its recorded calls.

The block stays the same from call to call where it can, and the planner's own calls are not in it.
One use is one entry in one plan or story: a pack that calls a model five times for one step was
used once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, Final

from django.db.models import Q

from helmdash.answers import OPTIONAL, WHEN_SAID, Stored
from helmdash.core.planning.plans import META_TOOLS
from helmdash.queries.plans.following import PLANNING_PURPOSES
from helmdash.records.models import Call, PlanStep

_DAYS: Final = 30
# Of each of the two sources, the newest: more would not change what is most frequent.
_MOST_ROWS: Final = 1_000
# Of each kind; a longer list would cost every plan's prompt more than it tells.
_SHOWN: Final = 12
_NOTE: Final = "Nothing learned yet: no plan or call of a pack of yours in the last 30 days."


@dataclass(frozen=True, slots=True, kw_only=True)
class Habit:
    """A pack or pipeline, how often it was used, and the most frequent value of each preference."""

    id: str
    count: int
    last_used_at: datetime
    common_inputs: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """A caller's habits, the most frequent first; both projections show twelve of each kind."""

    caller: str
    packs: tuple[Habit, ...]
    pipelines: tuple[Habit, ...]

    def for_prompt(self) -> Mapping[str, object] | None:
        """The block of a prompt; None where nothing was learned.

        Without times, and with counts rounded down to 1, 2, 5, 10, 20, 50 ..., so that it stays
        the same from call to call, and a prompt prefix that holds it stays cacheable.
        """
        if not self.packs and not self.pipelines:
            return None
        return {
            "packs": _prompt_items(self.packs, "calls"),
            "pipelines": _prompt_items(self.pipelines, "runs"),
        }

    def told(self, fetched_at: datetime) -> MyDefaults:
        """As the caller is told of them: `helmdeck://my-defaults`."""
        return MyDefaults(
            scope=f"caller={self.caller}",
            fetched_at=fetched_at,
            packs=tuple(
                UsedPack(
                    id=habit.id,
                    calls=habit.count,
                    last_used_unix=int(habit.last_used_at.timestamp()),
                    common_inputs=habit.common_inputs,
                )
                for habit in self.packs[:_SHOWN]
            ),
            pipelines=tuple(
                UsedPipeline(
                    id=habit.id,
                    runs=habit.count,
                    last_used_unix=int(habit.last_used_at.timestamp()),
                    common_inputs=habit.common_inputs,
                )
                for habit in self.pipelines[:_SHOWN]
            ),
            note=None if self.packs or self.pipelines else _NOTE,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedPack:
    """A pack the caller's plans use."""

    id: str
    calls: int
    last_used_unix: int
    common_inputs: Annotated[Mapping[str, str], WHEN_SAID, Stored(Mapping[str, object])]


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedPipeline:
    """A pipeline the caller's plans use."""

    id: str
    runs: int
    last_used_unix: int
    common_inputs: Annotated[Mapping[str, str], WHEN_SAID, Stored(Mapping[str, object])]


@dataclass(frozen=True, slots=True, kw_only=True)
class MyDefaults:
    """What the caller usually does."""

    scope: str
    fetched_at: datetime
    packs: tuple[UsedPack, ...]
    pipelines: tuple[UsedPipeline, ...]
    note: Annotated[str | None, OPTIONAL] = None


def caller_defaults(*, project_id: int, caller: str, now: datetime) -> Defaults:
    """What was learned about a caller in the last 30 days. Two queries."""
    since = now - timedelta(days=_DAYS)
    tally: dict[str, _Uses] = {}
    pipelines: set[str] = set()
    for step in _planned(project_id, caller, since):
        entry, is_pipeline, learned, plan, at = step
        if is_pipeline:
            pipelines.add(entry)
        tally.setdefault(entry, _Uses(at)).add(plan, at, learned)
    for pack, story, name, at in _called(project_id, caller, since):
        tally.setdefault(pack, _Uses(at)).add(story or name, at, None)
    habits = sorted(
        (uses.habit(entry) for entry, uses in tally.items()),
        key=lambda habit: (-habit.count, habit.id),
    )
    return Defaults(
        caller=caller,
        packs=tuple(habit for habit in habits if habit.id not in pipelines),
        pipelines=tuple(habit for habit in habits if habit.id in pipelines),
    )


@dataclass(slots=True)
class _Uses:
    last_at: datetime
    stories: set[str] = field(default_factory=set)
    inputs: dict[str, Counter[str]] = field(default_factory=dict)

    def add(self, story: str, at: datetime, learned: Mapping[str, str] | None) -> None:
        self.stories.add(story)
        self.last_at = max(self.last_at, at)
        for key, value in (learned or {}).items():
            self.inputs.setdefault(key, Counter())[value] += 1

    def habit(self, entry: str) -> Habit:
        return Habit(
            id=entry,
            count=len(self.stories),
            last_used_at=self.last_at,
            common_inputs={
                key: min(counts, key=lambda value: (-counts[value], value))
                for key, counts in sorted(self.inputs.items())
            },
        )


_Planned = tuple[str, bool, Mapping[str, str] | None, str, datetime]
_Called = tuple[str, str, str, datetime]


def _planned(project_id: int, caller: str, since: datetime) -> Iterable[_Planned]:
    steps = (
        PlanStep.objects.filter(
            plan__project_id=project_id,
            plan__caller=caller,
            plan__started_at__gte=since,
            plan__outcome__in=["ok", "gap", "partial"],
        )
        .exclude(plan__followed=False)
        .exclude(entry__in=["", *META_TOOLS])
        .order_by("-plan__started_at", "-plan_id", "position")
    )
    columns = ("entry", "is_pipeline", "learned", "plan__name", "plan__started_at")
    return steps.values_list(*columns)[:_MOST_ROWS]


def _called(project_id: int, caller: str, since: datetime) -> Iterable[_Called]:
    # `~Q(pack="")` in the words of the partial index: SQLite uses it only then.
    rows = Call.objects.filter(
        ~Q(pack=""),
        project_id=project_id,
        caller=caller,
        started_at__gte=since,
        status="success",
        cause="",
    ).exclude(purpose__in=PLANNING_PURPOSES)
    newest = rows.exclude(pack__in=META_TOOLS).order_by("-started_at")
    return newest.values_list("pack", "correlation_id", "name", "started_at")[:_MOST_ROWS]


def _prompt_items(habits: Sequence[Habit], counted: str) -> list[dict[str, object]]:
    rounded = sorted((-_rounded(habit.count), habit.id, habit) for habit in habits)
    return [
        {"id": name, counted: -count}
        | ({"common_inputs": dict(habit.common_inputs)} if habit.common_inputs else {})
        for count, name, habit in rounded[:_SHOWN]
    ]


def _rounded(count: int) -> int:
    """The largest of 1, 2, 5, 10, 20, 50 ... that is not above."""
    power = int("1" + "0" * (len(str(count)) - 1))
    return next(step * power for step in (5, 2, 1) if step * power <= count)
