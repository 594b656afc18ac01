"""Conversations: one with its fill curve, and the counters by level. The list is in `listing`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final

from django.db.models import Count

from helmdash.answers import BLANK_IS_NULL, HIDDEN, INLINE, Doc, JsonName, answer, member
from helmdash.core.budgets.health import Health
from helmdash.core.budgets.levels import LEVELS, Level
from helmdash.core.calls.routes import CallRoute
from helmdash.core.conversations.attention import Attention, attention_of
from helmdash.core.conversations.chains import Placing
from helmdash.core.conversations.clients import Client
from helmdash.queries.calls.calls import ClientWindow, ModelKey, client_of_row, health_of
from helmdash.queries.conversations import care
from helmdash.queries.conversations.care import CareView, GuidanceView, ReminderView
from helmdash.queries.conversations.curve import CurvePoint, WholePoint, curve_of, whole_of
from helmdash.records.conversation_names import named
from helmdash.records.models import Conversation, HealthChange, Round
from helmdash.records.rollups.level_counts import read_levels


@answer("Counts")
@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationCounts:
    """Over all rounds."""

    calls: int
    side_calls: Annotated[int, Doc("Of these, calls beside it, which have no generation.")]
    earlier_attempts: Annotated[
        int, Doc("Of these, attempts at streams whose generation a later attempt has.")
    ]
    rounds: int
    failures: int
    trims: int


@answer("Conversation")
@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationView:
    """One conversation as its newest call left it."""

    id: str
    parent: Annotated[str | None, Doc("The conversation that it is a part of.")]
    model: str
    model_key: ModelKey
    client: Client | None
    client_window: ClientWindow
    round_number: Annotated[int, JsonName("round")]
    generation: int
    health: Health
    known_level: Level | None
    attention: Annotated[
        tuple[Attention, ...],
        Doc("Why somebody should look at it, the worst reason first; empty: nothing does."),
    ]
    failures: Annotated[int, HIDDEN]
    trims: Annotated[int, HIDDEN]
    side_calls: Annotated[int, HIDDEN]
    earlier_attempts: Annotated[int, HIDDEN]
    started_at: datetime
    latest_at: datetime
    # A clear has opened the round, and it has no call yet.
    is_round_empty: Annotated[bool, HIDDEN] = False

    @property
    @member
    def counts(self) -> ConversationCounts:
        """What there was of it so far."""
        return ConversationCounts(
            # Generations are numbered without a gap, so the newest number is their count.
            calls=self.generation + self.side_calls + self.earlier_attempts,
            side_calls=self.side_calls,
            earlier_attempts=self.earlier_attempts,
            rounds=self.round_number,
            failures=self.failures,
            trims=self.trims,
        )


@answer("SubAgent")
@dataclass(frozen=True, slots=True, kw_only=True)
class SubAgent:
    """A conversation that is a part of another one, as its newest call left it."""

    id: str
    model: str
    generation: int
    level: Level
    prompt_tokens: int | None
    latest_at: datetime


@answer("Round")
@dataclass(frozen=True, slots=True, kw_only=True)
class RoundView:
    """The calls between two fresh starts of the context.

    The newest round of a cleared conversation may have no call yet. opened_by: "" for the first.
    """

    number: int
    first_generation: int
    latest_generation: int
    peak_prompt_tokens: int | None
    started_at: datetime
    ended_at: datetime | None
    opened_by: Annotated[str, BLANK_IS_NULL, Doc("clear | client_compaction; null: the first.")]

    @property
    def is_empty(self) -> bool:
        """Whether it has no call yet."""
        return self.latest_generation < self.first_generation


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelChange:
    """The level became another one with this generation.

    is_fresh: with the first call of a round after the first one.
    """

    generation: int
    from_level: Level | None
    to_level: Level
    at: datetime
    is_fresh: Annotated[bool, HIDDEN] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Remediation:
    """What is being done about the level, and what was done (newest first, at most 50)."""

    state: Annotated[CareView, INLINE]
    guidance: tuple[GuidanceView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationDetail:
    """One conversation with its rounds and level changes (newest first, at most 50).

    curve: some of the newest generations; whole: points of all, for a long one. care: what is done
    about its level. guidance: the newest of what was told to the agent.
    """

    conversation: Annotated[ConversationView, INLINE]
    sub_agents: Annotated[
        tuple[SubAgent, ...], Doc("Conversations that are parts of it; newest first, at most 50.")
    ]
    rounds: tuple[RoundView, ...]
    changes: Annotated[tuple[LevelChange, ...], JsonName("level_changes")]
    curve: Annotated[tuple[CurvePoint, ...], HIDDEN]
    whole: Annotated[tuple[WholePoint, ...], HIDDEN]
    care: Annotated[CareView, HIDDEN]
    guidance: Annotated[tuple[GuidanceView, ...], HIDDEN]
    reminders: Annotated[tuple[ReminderView, ...], HIDDEN]

    @property
    @member
    def routes(self) -> tuple[str, ...]:
        """The doors that told of its newest generations; one call may come by several."""
        told = {route for point in self.curve for route in point.routes}
        return tuple(route.value for route in CallRoute if route.value in told)

    @property
    @member
    def remediation(self) -> Remediation:
        """Both together."""
        return Remediation(state=self.care, guidance=self.guidance)


# A row says it in one word; whoever reads it has to know whose compaction it was.
_OPENERS: Final = {Placing.COMPACTION.value: "client_compaction"}
# A long session may have started hundreds.
_SUB_AGENTS: Final = 50


def find(
    *, project_id: int, conversation_id: str, up_to: int | None = None, since: int | None = None
) -> ConversationDetail | None:
    """One conversation; None if it does not exist in the project. Seven queries, one more for a
    long one.

    since, up_to: the generations that its curve begins and ends with; None: the newest that fit.
    """
    with_project = Conversation.objects.select_related("project")
    row = named(project_id, conversation_id, among=with_project)
    if row is None:
        return None
    rounds = list(row.rounds.filter(project_id=project_id).order_by("number"))
    # Only a clear leaves the level of the round before behind; a compaction comes with a call.
    fresh = {item.first_generation for item in rounds if item.opened_by == "clear"}
    changes = HealthChange.objects.filter(project_id=project_id, conversation=row)
    return ConversationDetail(
        conversation=view(row),
        sub_agents=_sub_agents(row),
        rounds=tuple(
            RoundView(
                number=item.number,
                first_generation=item.first_generation,
                latest_generation=item.latest_generation,
                peak_prompt_tokens=item.peak_prompt_tokens,
                started_at=item.started_at,
                ended_at=item.ended_at,
                opened_by=_OPENERS.get(item.opened_by, item.opened_by),
            )
            for item in rounds
        ),
        changes=tuple(
            LevelChange(
                generation=item.generation,
                from_level=Level(item.from_level) if item.from_level else None,
                to_level=Level(item.to_level),
                at=item.at,
                is_fresh=item.generation in fresh,
            )
            for item in changes.order_by("-generation")[:50]
        ),
        curve=curve_of(row, up_to=up_to, since=since),
        whole=whole_of(row),
        care=care.care_view(
            next((item.care for item in rounds if item.number == row.round_number), None),
            round_number=row.round_number,
            enabled=row.project.remediation,
            recorded=row.generation,
        ),
        guidance=care.guidance_of(row),
        reminders=care.reminders_of(row),
    )


def _sub_agents(row: Conversation) -> tuple[SubAgent, ...]:
    # In the order of the index: nothing is sorted, and ids rise with time.
    parts = Conversation.objects.filter(project_id=row.project_id, parent=row.name)
    return tuple(
        SubAgent(
            id=part.name,
            model=part.model,
            generation=part.generation,
            level=Level(part.level),
            prompt_tokens=part.prompt_tokens,
            latest_at=part.latest_at,
        )
        for part in parts.order_by("-id")[:_SUB_AGENTS]
    )


def standing(*, project_id: int, conversation_id: str) -> ConversationView | None:
    """One conversation as its newest call left it, without rounds and history; None if it does not
    exist in the project. One query."""
    row = named(project_id, conversation_id)
    return None if row is None else view(row)


def counters(*, project_id: int) -> dict[Level, int]:
    """How many conversations stand at each level. One query; where they were never counted, another
    over a narrow index."""
    counted = read_levels(project_id)
    if counted is not None:
        return {level: counted[LEVELS[level].severity] for level in Level}
    rows = (
        Conversation.objects.filter(project_id=project_id)
        .values_list("severity")
        .annotate(count=Count("id"))
        .order_by()
    )
    found = dict(rows)
    return {level: found.get(LEVELS[level].severity, 0) for level in Level}


def opened_rounds(*, project_id: int) -> dict[str, int]:
    """How many rounds clears and clients' compactions have opened. One query, a narrow index."""
    rows = Round.objects.filter(project_id=project_id).exclude(opened_by="")
    return dict(rows.values_list("opened_by").annotate(count=Count("id")).order_by())


def view(row: Conversation) -> ConversationView:
    """The value behind a row."""
    return ConversationView(
        id=row.name,
        parent=row.parent,
        model=row.model,
        model_key=row.model_key or row.model,
        client=client_of_row(row),
        client_window=row.client_window,
        round_number=row.round_number,
        generation=row.generation,
        health=health_of(row),
        known_level=Level(row.known_level) if row.known_level else None,
        attention=attention_of(row) if row.attention else (),
        failures=row.failures,
        trims=row.trims,
        side_calls=row.side_calls or 0,
        earlier_attempts=row.earlier_attempts or 0,
        started_at=row.started_at,
        latest_at=row.latest_at,
        is_round_empty=row.is_round_empty,
    )
