"""The fresh start of a conversation: asked for, or because the countdown has run out.

A clear closes the round and opens the next one, which is empty until its first call. What was
under way is late (core.conversations.placement) and cannot reach the new round.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.db.models import QuerySet

from helmdash.core.access.permissions import Actor, Right, require
from helmdash.core.budgets.budget_table import BudgetTable
from helmdash.core.budgets.budgets import EffectiveBudget
from helmdash.core.budgets.levels import LEVELS, Level
from helmdash.core.care.remediation import CareAction, new_round
from helmdash.core.care.reminders import Note, build_package, package_bytes
from helmdash.core.conversations.placement import EMPTY_ROUND
from helmdash.core.rules import CARE_RULES
from helmdash.operations.care import braking, pending_prompts
from helmdash.operations.care.locked_conversation import LockedConversation, care_json, lock, read
from helmdash.operations.care.problems import Braked, NoConversation
from helmdash.operations.care.reminders import add_re_entry, mark_followed
from helmdash.operations.care.values import Cleared, ClientHistory, Restart
from helmdash.operations.database import rule_sets
from helmdash.operations.database.transactions import write
from helmdash.operations.rollups.noting import note
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.budgets import budgets
from helmdash.records import audit
from helmdash.records.access.secrets import seal, unseal
from helmdash.records.conversation_names import named
from helmdash.records.models import Conversation, Guidance, Reminder, Round

REASON_CHARS = 200
# The reason of a clear that the agent, or a person, asked for.
OWN_WISH = "clear_mind"


@dataclass(frozen=True, slots=True, kw_only=True)
class Clearing:
    """How a round is cleared: by which budget, why, and before which generation.

    asked_by: the generation whose `advance` led to it, so that a repeat gets the same answer.
    by_itself: nobody asked for it.
    """

    budget: EffectiveBudget
    reason: str
    client: ClientHistory | None
    generation: int | None
    asked_by: int | None
    by_itself: bool
    now: datetime


def clear(
    *,
    actor: Actor,
    project: ProjectInfo,
    conversation: str,
    reminder_content: str | None = None,
    reason: str = OWN_WISH,
    client: ClientHistory | None = None,
    generation: int | None = None,
    model: str | None = None,
    by_itself: bool = False,
    now: datetime,
) -> Cleared:
    """Give a conversation a fresh start: a new round, its re-entry package, the texts that wait.

    reminder_content: a last note that goes into the package; blank is none. generation: the one
    about to start, or being tried again. model: the one about to be asked; its budget bounds the
    package. client: the history that the client sends; None: nobody saw one. In a round without
    calls nothing is cleared: the same round and package come back.
    Raises Forbidden, NoConversation, and CareProblem for a reminder that cannot be stored. One that
    nobody asked for (by_itself) raises Braked where the last two rounds brought nothing new.
    """
    require(actor, Right.CARE, project_id=project.id)
    table = budgets.table(project_id=project.id)

    def work() -> Cleared | None:
        locked = lock(project.id, conversation)
        if locked is None:
            raise NoConversation(conversation)
        name = locked.row.name
        rules = table.for_conversation(name)
        if by_itself and not locked.row.is_round_empty and is_braked(locked, client):
            # The next step tells the agent. Raised behind the transaction, which has to be kept.
            locked.save(replace(locked.state, level=Level.CRITICAL, countdown=0))
            return None
        is_told = add_re_entry(locked, reminder_content, now=now)
        clearing = Clearing(
            budget=read(locked, rules, model=model).budget,
            reason=reason,
            client=client,
            generation=generation,
            asked_by=None,
            by_itself=by_itself,
            now=now,
        )
        pending_prompts.forget_answered(locked.row, first=locked.first_waiting)
        is_new = not locked.row.is_round_empty
        if is_new:
            if reason == OWN_WISH:
                # Whoever clears by itself has done what the guidance asked for.
                mark_followed(locked, now=now)
            package = start_over(locked, clearing)
            audit.note_care(actor=actor, project_id=project.id, conversation=name, action="cleared")
        else:
            package = _same_again(locked.row, clearing, is_told=is_told)
        return Cleared(
            round_number=locked.row.round_number,
            package=package,
            carried=pending_prompts.pending(locked.row),
            restart=restart_from(locked.row, rules),
            is_new=is_new,
        )

    cleared = write(work)
    if cleared is None:
        raise Braked(conversation)
    return cleared


def is_braked(locked: LockedConversation, client: ClientHistory | None) -> bool:
    """Whether a clear that is due by itself is not to be done; client as in `braking.holds`. Four
    queries at most."""
    return braking.holds(locked, locked.restart, client)


def start_over(locked: LockedConversation, clearing: Clearing) -> str:
    """Close the round of a locked conversation and open the next one. Its re-entry package."""
    row, state, now = locked.row, locked.state, clearing.now
    # A conversation has one call under way at most, whatever its caller counts.
    late_until = row.generation + locked.is_under_way
    before = row.round_number
    marks = braking.marks_of(locked, locked.restart, by_itself=clearing.by_itself)
    draft = dict(clearing.client.draft()) if clearing.client else {}
    package = _package(row, clearing.budget, round_number=before + 1, draft=draft)
    decided = max(state.generation, clearing.asked_by or 0, clearing.generation or 0)
    fresh = new_round(before + 1, generation=decided)
    _round(row, before).update(ended_at=now)
    restart = _restart_json(clearing, package, draft) | marks
    Round.objects.create(
        project_id=row.project_id,
        conversation=row,
        number=before + 1,
        # Its first call says where it really begins.
        first_generation=row.generation + 1,
        latest_generation=row.generation,
        started_at=now,
        opened_by="clear",
        care=care_json(fresh, clearing.budget.caution_cadence, row.generation),
        restart=restart,
    )
    locked.restart, locked.has_inserts = restart, False
    # One that is tried again was told something that was never sent.
    # One that is recorded was sent: a stream that is asked for again begins the next one.
    unsent = clearing.generation if (clearing.generation or 0) > row.generation else None
    told = clearing.asked_by or unsent or max(decided, row.generation) + 1
    _tell(row, clearing, generation=told)
    _leave_level(row, late_until=late_until, now=now)
    locked.state, locked.recorded = fresh, row.generation
    return package


def anchor(locked: LockedConversation, client: ClientHistory) -> None:
    """Say which of a client's history an empty round's package stands for, if nothing says it yet.

    A clear that an agent or a person asked for knows no client; the next request through the
    gateway shows what it has dropped, and what of it is not carried: the package tells of that.
    """
    row, stored = locked.row, locked.restart
    if not row.is_round_empty or "package" not in stored or "messages" in stored:
        return
    told: dict[str, object] = {
        "messages": client.messages,
        "digest": client.digest(),
        "carried": list(client.carried()),
    }
    package, earlier = unseal(str(stored["package"])), client.earlier()
    if earlier and package is not None:
        told["package"] = seal(f"{package}\n\n{earlier}")
    locked.restart = {**stored, **told}
    _round(row, row.round_number).update(restart=locked.restart)


def stored_package(row: Conversation, round_number: int) -> tuple[str, int | None]:
    """The package a round was begun with ("" for none), and the generation whose advance asked for
    it; None: no advance did."""
    stored = _stored_restart(row, round_number)
    package = unseal(str(stored.get("package", "")))
    asked_by = stored.get("asked_by")
    return package or "", asked_by if isinstance(asked_by, int) else None


def restart_of(*, project: ProjectInfo, conversation: str) -> Restart | None:
    """How a gateway goes on in the open round. None: with the client's history as it is."""
    row = named(project.id, conversation)
    if row is None:
        return None
    rules = budgets.table(project_id=project.id).for_conversation(row.name)
    return restart_from(row, rules)


def restart_of_locked(locked: LockedConversation, rules: BudgetTable) -> Restart | None:
    """As `restart_of`, for a conversation that is locked; None likewise. One query where prompts
    were recorded."""
    inserts = _inserts(locked.row) if locked.has_inserts else ()
    return _restart_from(locked.row, rules, locked.restart, inserts)


def restart_from(row: Conversation, rules: BudgetTable) -> Restart | None:
    """As `restart_of`, for a row at hand; None likewise. Two queries."""
    return _restart_from(row, rules, _stored_restart(row, row.round_number), _inserts(row))


def _inserts(row: Conversation) -> Sequence[tuple[int | None, str]]:
    """The prompts recorded in the open round, each with its place in the client's history."""
    found = Guidance.objects.filter(
        project_id=row.project_id,
        conversation=row,
        round_number=row.round_number,
        action=CareAction.RECORD_PROMPT.value,
        position__isnull=False,
    )
    return tuple(found.order_by("generation").values_list("position", "text"))


def _restart_from(
    row: Conversation,
    rules: BudgetTable,
    stored: Mapping[str, object],
    inserts: Sequence[tuple[int | None, str]],
) -> Restart | None:
    messages, digest, carried = (stored.get(name) for name in ("messages", "digest", "carried"))
    told = tuple((position or 0, text) for position, text in inserts)
    if not isinstance(messages, int) or not isinstance(carried, list):
        return (
            Restart(messages=0, digest="", carried=(), package="", inserts=told) if told else None
        )
    package = unseal(str(stored.get("package", "")))
    if package is None:
        # Sealed under another key: the reminders tell most of it.
        budget = rules.lookup(row.model, key=row.model_key, client_window=row.client_window)
        package = _package(row, budget, round_number=row.round_number, draft={})
    return Restart(
        messages=messages,
        digest=str(digest),
        carried=tuple(int(index) for index in carried),
        package=package,
        inserts=told,
    )


def _same_again(row: Conversation, clearing: Clearing, *, is_told: bool) -> str:
    """The package of the empty round; a reminder that was just added goes into it."""
    stored = _stored_restart(row, row.round_number)
    package = unseal(str(stored.get("package", "")))
    if package is not None and not is_told:
        return package
    kept = unseal(str(stored.get("draft", "")))
    draft: dict[str, str] = json.loads(kept) if kept else {}
    package = _package(row, clearing.budget, round_number=row.round_number, draft=draft)
    _round(row, row.round_number).update(restart={**stored, "package": seal(package)})
    return package


def _package(
    row: Conversation, budget: EffectiveBudget, *, round_number: int, draft: Mapping[str, str]
) -> str:
    return build_package(
        _notes(row), max_bytes=package_bytes(budget), round_number=round_number, draft=draft
    ).text


def _notes(row: Conversation) -> Sequence[Note]:
    rows = Reminder.objects.filter(project_id=row.project_id, conversation=row)
    return [
        Note(id=each.name, kind=each.kind, content=each.content)
        for each in rows.order_by("position", "id")
    ]


def _restart_json(clearing: Clearing, package: str, draft: Mapping[str, str]) -> dict[str, object]:
    stored: dict[str, object] = {"package": seal(package), "asked_by": clearing.asked_by}
    client = clearing.client
    if client is None:
        return stored
    return stored | {
        "draft": seal(json.dumps(dict(draft))) if draft else "",
        "messages": client.messages,
        "digest": client.digest(),
        "carried": list(client.carried()),
    }


def _stored_restart(row: Conversation, round_number: int) -> Mapping[str, object]:
    stored = _round(row, round_number).values_list("restart", flat=True).first()
    return stored if isinstance(stored, dict) else {}


def _round(row: Conversation, number: int) -> QuerySet[Round]:
    return Round.objects.filter(project_id=row.project_id, conversation=row, number=number)


def _tell(row: Conversation, clearing: Clearing, *, generation: int) -> None:
    Guidance.objects.update_or_create(
        project_id=row.project_id,
        conversation=row,
        generation=generation,
        defaults={
            "round_number": row.round_number,
            "action": CareAction.CLEAR.value,
            "strength": "",
            "text": "",
            "remaining": 0 if clearing.asked_by else None,
            "reason": clearing.reason[:REASON_CHARS],
            "position": None,
            "at": clearing.now,
            "followed_at": None,
            "rules_id": rule_sets.keep(CARE_RULES),
        },
    )


def _leave_level(row: Conversation, *, late_until: int, now: datetime) -> None:
    """The new round's level is unknown until its first call: nothing of the old one is left."""
    unknown = LEVELS[Level.UNKNOWN].severity
    if row.severity != unknown:
        note(row.project_id, [], now=now, levels={row.severity: -1, unknown: 1})
    changes: dict[str, object] = {
        "round_number": row.round_number + 1,
        **EMPTY_ROUND,
        "cleared_at": now,
        "late_until": late_until,
        "is_round_empty": True,
        "attention": 0,
        "client_refusal": None,
        "held_level": None,
    }
    for name, value in changes.items():
        setattr(row, name, value)
    row.save(update_fields=list(changes))
