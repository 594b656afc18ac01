"""Care of conversations as it stands: what holds, what was told to the agent, its reminders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Final

from django.db.models import OuterRef, QuerySet, Subquery

from helmdash.answers import HIDDEN, Doc, JsonName, Words, answer, member
from helmdash.core.budgets.health import Health
from helmdash.core.budgets.levels import HELD, Level
from helmdash.core.care.remediation import COUNTDOWN, CareState, Strength, next_hard_in
from helmdash.core.conversations.attention import Attention, attention_of
from helmdash.queries.calls.calls import health_of
from helmdash.records.conversation_names import named
from helmdash.records.models import Conversation, Guidance, Project, Reminder, Round, TriageWord

# The newest ones tell where a conversation stands; the timeline has the rest.
SHOWN_GUIDANCE = 50
# What went on within a day somebody may still be at; the rest is history.
RECENT: Final = timedelta(days=1)

# Words that are kept as plain text.
ActionText = Annotated[str, Words(("none", "guide", "record_prompt", "clear"))]
StrengthText = Annotated[str, Words(("soft", "hard", "critical"))]


@answer("RemediationState")
@dataclass(frozen=True, slots=True, kw_only=True)
class CareView:
    """What is being done about the level of a conversation.

    level: the one held, caution or critical; None below. grace_left: soft guidances still to come.
    countdown: units left before the clear. next_hard_in: generations until a hard guidance, as far
    as is known. followed: whether a reminder was written after the newest guidance that asked for
    one; None where none did. enabled: whether the project's gateway acts on it by itself.
    is_waiting: a level is held, and no call was recorded since the last decision: nobody can tell
    yet what came of it. braked_at: the generation at which care stopped clearing, for two rounds in
    a row brought nothing new; None: it clears.
    """

    level: Annotated[
        Level | None,
        Doc("The level held. It is left downwards only well below its line."),
    ] = None
    grace_left: Annotated[int | None, Doc("Soft guidances until the first hard one.")] = None
    countdown: Annotated[int | None, Doc("Generations until the clear.")] = None
    next_hard_in: Annotated[int | None, Doc("Generations until the next hard one.")] = None
    followed: Annotated[
        bool | None, Doc("Whether a reminder was written since the last hard one.")
    ] = None
    enabled: Annotated[bool, HIDDEN] = False
    generation: Annotated[int, HIDDEN] = 0  # the last one decided; 0: none
    is_waiting: Annotated[bool, HIDDEN] = False
    braked_at: Annotated[
        int | None,
        Doc(
            "The generation at which care stopped clearing, for two rounds in a row "
            "brought no answer, no new step and no changed reminder; null: it clears. It goes on "
            "when one comes, or with `go-on`."
        ),
    ] = None

    @property
    @member
    def active(self) -> Annotated[bool, Doc("Whether the level held is caution or critical.")]:
        """Whether anything is done."""
        return self.level in HELD


@answer("GuidanceGiven")
@dataclass(frozen=True, slots=True, kw_only=True)
class GuidanceView:
    """What was done before one generation.

    text: "" where none was given.
    """

    generation: int
    round_number: Annotated[int, JsonName("round")]
    action: ActionText
    strength: StrengthText | None
    text: Annotated[str, HIDDEN]
    remaining: int | None
    reason: Annotated[str, HIDDEN]
    position: Annotated[int | None, HIDDEN]
    at: datetime
    followed_at: Annotated[datetime | None, Doc("When a reminder was written after it.")]


@answer("Reminder")
@dataclass(frozen=True, slots=True, kw_only=True)
class ReminderView:
    """A note that survives fresh starts. Together they are the re-entry package.

    position: from 1, without gaps.
    """

    id: str
    position: int
    kind: Annotated[str, Words(("note", "re_entry"))]
    content: str
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ReminderList:
    """All reminders of a conversation, by position."""

    items: tuple[ReminderView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedsAttention:
    """A conversation that somebody should look at, and what is done about it meanwhile."""

    id: str
    model: str
    model_key: str
    client_window: int | None
    round_number: int
    generation: int
    health: Health
    attention: tuple[Attention, ...]
    care: CareView
    # A hard guidance of the open round was not answered by a reminder, though its generation ended.
    is_unfollowed: bool
    latest_at: datetime
    # The newest note on it; "" where there is none.
    note: str = ""
    # No call in the last RECENT.
    is_quiet: bool = False


def care_of(*, project_id: int, conversation: str) -> CareView:
    """Where remediation stands; the resting state for a conversation nobody knows. One query."""
    found = (
        Conversation.objects.filter(project_id=project_id, name=conversation)
        .annotate(care=_open_care())
        .values_list("care", "round_number", "project__remediation", "generation")
        .first()
    )
    if found is None:
        return CareView()
    care, round_number, enabled, recorded = found
    return care_view(care, round_number=round_number, enabled=enabled, recorded=recorded)


def care_view(
    care: object, *, round_number: int, enabled: bool, recorded: int | None = None
) -> CareView:
    """Read what is stored with a round (`Round.care`); a round without it rests.

    recorded: the newest generation of the conversation that was recorded; None: none was.
    """
    state = CareState.from_json(care)
    if not isinstance(care, Mapping) or state.round_number != round_number:
        return CareView(enabled=enabled)
    cadence = care.get("cadence")
    is_caution = state.level is Level.CAUTION
    asked = state.since_hard is not None or (
        state.countdown is not None and state.countdown < COUNTDOWN
    )
    return CareView(
        level=state.level,
        grace_left=state.grace if is_caution else None,
        countdown=state.countdown,
        next_hard_in=next_hard_in(state, cadence=cadence) if isinstance(cadence, int) else None,
        followed=state.is_followed if asked else None,
        enabled=enabled,
        generation=state.generation,
        is_waiting=_is_waiting(care, state, recorded),
        braked_at=state.braked_at,
    )


def _is_waiting(care: Mapping[str, object], state: CareState, recorded: int | None) -> bool:
    """Whether a generation was decided and no call recorded since."""
    if recorded is None or state.level is None:
        return False
    then = care.get("recorded")
    # Callers may count in their own way, so what was recorded then decides, where it is known.
    return recorded <= then if isinstance(then, int) else state.generation > recorded


def guidance(
    *, project_id: int, conversation: str, limit: int = SHOWN_GUIDANCE
) -> tuple[GuidanceView, ...]:
    """What was told to the agent, newest first; empty for an unknown conversation. One query."""
    rows = Guidance.objects.filter(
        project_id=project_id, conversation__project_id=project_id, conversation__name=conversation
    )
    return tuple(_guidance_view(row) for row in rows.order_by("-generation")[:limit])


def guidance_of(row: Conversation, *, limit: int = SHOWN_GUIDANCE) -> tuple[GuidanceView, ...]:
    """The same for a row at hand."""
    rows = row.guidance.filter(project_id=row.project_id).order_by("-generation")
    return tuple(_guidance_view(each) for each in rows[:limit])


def reminders(*, project_id: int, conversation: str) -> tuple[ReminderView, ...] | None:
    """The reminders in their order. None: no such conversation. Two queries."""
    row = named(project_id, conversation)
    return None if row is None else reminders_of(row)


def reminders_of(row: Conversation) -> tuple[ReminderView, ...]:
    """The same for a row at hand."""
    rows = row.reminders.filter(project_id=row.project_id).order_by("position", "id")
    return tuple(reminder_view(each) for each in rows)


def reminder_view(row: Reminder) -> ReminderView:
    """The value behind a row."""
    return ReminderView(
        id=row.name,
        position=row.position,
        kind=row.kind,
        content=row.content,
        updated_at=row.updated_at,
    )


def needs_attention(
    *, project_id: int, now: datetime, limit: int = 10
) -> tuple[NeedsAttention, ...]:
    """Conversations that somebody should look at; two queries at most.

    First those with a call in the last RECENT, then the others; of both the worst first, by the
    newest call.
    """
    rows = in_need(_watched(project_id))
    found = list(rows.filter(latest_at__gte=now - RECENT)[:limit])
    if len(found) < limit:
        found += rows.filter(latest_at__lt=now - RECENT)[: limit - len(found)]
    return tuple(_needs_attention(row, now) for row in found)


def count_needs_attention(*, project_id: int) -> int:
    """How many conversations somebody should look at. One query."""
    return in_need(Conversation.objects.filter(project_id=project_id)).count()


def in_need(rows: QuerySet[Conversation]) -> QuerySet[Conversation]:
    """Those that somebody should look at, the worst first: by an index of them alone."""
    return rows.filter(attention__gt=0).order_by("-attention", "-latest_at", "-id")


def _watched(project_id: int) -> QuerySet[Conversation]:
    """Conversations with their care, and the oldest hard guidance that waits to be followed."""
    unfollowed = _unfollowed(project_id).order_by("generation").values("generation")[:1]
    rows = Conversation.objects.filter(project_id=project_id)
    # A join would come first for SQLite, which then sorts all rows instead of taking the index's.
    notes = TriageWord.objects.filter(conversation=OuterRef("pk"), word="note")
    enabled = Project.objects.filter(pk=OuterRef("project_id")).values("remediation")
    return rows.annotate(
        care=_open_care(),
        unfollowed_from=Subquery(unfollowed),
        is_enabled=Subquery(enabled),
        note=Subquery(notes.order_by("-id").values("text")[:1]),
    )


def _needs_attention(row: Conversation, now: datetime) -> NeedsAttention:
    stored: object = getattr(row, "care", None)
    unfollowed: int | None = getattr(row, "unfollowed_from", None)
    care = care_view(
        stored,
        round_number=row.round_number,
        enabled=bool(getattr(row, "is_enabled", False)),
        recorded=row.generation,
    )
    is_early = care.is_waiting and unfollowed is not None and unfollowed >= care.generation
    return NeedsAttention(
        id=row.name,
        model=row.model,
        model_key=row.model_key,
        client_window=row.client_window,
        round_number=row.round_number,
        generation=row.generation,
        health=health_of(row),
        attention=attention_of(row),
        care=care,
        is_unfollowed=unfollowed is not None and not is_early,
        latest_at=row.latest_at,
        note=getattr(row, "note", "") or "",
        is_quiet=row.latest_at < now - RECENT,
    )


def _open_care() -> Subquery:
    """The care of a conversation's open round, as a column of Conversation."""
    opened = Round.objects.filter(
        project_id=OuterRef("project_id"),
        conversation=OuterRef("pk"),
        number=OuterRef("round_number"),
    )
    return Subquery(opened.values("care")[:1])


def _unfollowed(project_id: int) -> QuerySet[Guidance]:
    return Guidance.objects.filter(
        followed_at__isnull=True,
        project_id=project_id,
        conversation=OuterRef("pk"),
        round_number=OuterRef("round_number"),
        strength=Strength.HARD.value,
    )


def _guidance_view(row: Guidance) -> GuidanceView:
    return GuidanceView(
        generation=row.generation,
        round_number=row.round_number,
        action=row.action,
        strength=row.strength or None,
        text=row.text,
        remaining=row.remaining,
        reason=row.reason,
        position=row.position,
        at=row.at,
        followed_at=row.followed_at,
    )
