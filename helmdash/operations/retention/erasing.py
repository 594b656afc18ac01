"""Erasing a conversation with all that hangs on it, for good (ADR 22).

Its calls with their payloads and what they added to rollups, the messages that no other call
carries, the fits and plans that were made for it, rounds, marks, level changes, guidance,
reminders, texts that wait: whatever refers to the row, and saved views that ask for it by name, or
by the one that it had before its agent's id was known. The conversations of its sub-agents go the
same way. Answers kept for repeats of requests are given no
more. What is still in memory or in the spool is stored first, so that it is erased as well; a call
that ends later begins the conversation anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Annotated

from django.db import connection, models

from helmdash.answers import JsonName
from helmdash.core.access.permissions import Actor, Right, require
from helmdash.operations import idempotency
from helmdash.operations.alerts.forgetting import forget_acknowledged, forget_conversation
from helmdash.operations.database.scrubbing import scrub
from helmdash.operations.database.steps import StepSize
from helmdash.operations.database.transactions import write, write_and_pause
from helmdash.operations.recorder import recorder
from helmdash.operations.retention import erased_asks
from helmdash.operations.retention.erased_views import forget_in_views
from helmdash.operations.retention.former_names import former_names
from helmdash.operations.rollups.folding import fold_all
from helmdash.operations.rollups.noting import (
    note_deleted_conversations,
    note_erased,
    note_erased_fits,
)
from helmdash.queries.access.access import ProjectInfo
from helmdash.records import audit
from helmdash.records.call_names import Place, calls_at, delete_names, payloads_at
from helmdash.records.conversation_names import named
from helmdash.records.models import (
    AuditEntry,
    Call,
    CallName,
    Conversation,
    Fit,
    PendingPrompt,
    StoredMessage,
    TrialCall,
)
from helmdash.records.models.audit import SUBJECT_CHARS
from helmdash.records.querysets import calls_of
from helmdash.records.references import referred_to, wait_for_writers

# As retention does: at most, and on SQLite no more than a step writes in a moment.
BATCH_ROWS = 2000
# Long ago: a recorder that meets such a message stores it anew instead of relying on it.
UNSEEN = datetime(1970, 1, 2, tzinfo=UTC)
_SETTLE_SECONDS = 5.0
# How the audit log calls it from then on.
_NAMELESS = "(erased)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """What is gone. All zero where nothing was stored of it (any more)."""

    calls: int = 0
    messages: int = 0
    fits: int = 0
    plans: int = 0
    sub_agents: int = 0
    prompts: Annotated[int, JsonName("waiting_prompts")] = 0

    def __add__(self, other: Erased) -> Erased:
        """Both together."""
        return Erased(
            calls=self.calls + other.calls,
            messages=self.messages + other.messages,
            fits=self.fits + other.fits,
            plans=self.plans + other.plans,
            sub_agents=self.sub_agents + other.sub_agents,
            prompts=self.prompts + other.prompts,
        )


def erase_conversation(
    *,
    actor: Actor,
    project: ProjectInfo,
    conversation: str,
    now: datetime,
    batch: int = BATCH_ROWS,
) -> Erased:
    """Erase a conversation of a project; doing it again changes nothing. Raises Forbidden.

    In steps, so that others write in between: broken off, it goes on when it is asked for again.
    """
    require(actor, Right.ERASE, project_id=project.id)
    if "\x00" in conversation:
        return Erased()
    # First, and by itself: an erasure that breaks off was begun all the same.
    write(partial(_note, actor, project))
    recorder().settle(_SETTLE_SECONDS)
    row = named(project.id, conversation)
    names = _with_sub_agents(project.id, row.name if row is not None else conversation)
    erased = Erased(sub_agents=len(names) - 1)
    # The innermost first: broken off, they are found by their parents again.
    for name in reversed(names):
        # So are former names, by the calls: what is kept by one of them goes before these.
        former = {*former_names(project.id, name), conversation} - {*names}
        for each in (*sorted(former), name):
            erased += _erase_one(project, each, now=now, batch=batch)
    idempotency.withhold(project_id=project.id)
    # So that nothing waits that tells of its calls one by one.
    fold_all()
    scrub()
    return erased


def _erase_one(project: ProjectInfo, name: str, *, now: datetime, batch: int) -> Erased:
    recorder().forget_rejected(project_id=project.id, conversation=name)
    told = AuditEntry.objects.filter(project_id=project.id, kind="conversation")
    told.filter(subject=name[:SUBJECT_CHARS]).update(subject=_NAMELESS)
    forget_acknowledged(project_id=project.id, name=name, nameless=_NAMELESS)
    row = Conversation.objects.filter(project_id=project.id, name=name).first()
    erased = _erase_asks(project.id, name, now=now, batch=batch)
    size = StepSize(batch)
    while row is not None:
        while calls := _some_calls(row, size.rows):
            erased += _erase_calls(project.id, calls, now, size)
        # A call may have come in since; then there is more to erase.
        if write(partial(_delete_if_empty, row, now)):
            break
        row = Conversation.objects.filter(pk=row.pk).first()
    write(partial(forget_conversation, project_id=project.id, name=name, now=now))
    forget_in_views(project_id=project.id, conversation=name, nameless=_NAMELESS)
    waiting = PendingPrompt.objects.filter(project_id=project.id, conversation_name=name)
    prompts, _ = waiting.delete()
    return erased + Erased(prompts=prompts)


def _erase_asks(project_id: int, name: str, *, now: datetime, batch: int) -> Erased:
    erased, size = Erased(), StepSize(batch)
    while (found := erased_asks.find_plans(project_id, name, size.rows)).plans:
        # The calls first: broken off, they are found by their plans again.
        erased += _erase_calls(project_id, found.calls, now, size)
        erased += Erased(plans=erased_asks.erase_plans(project_id, found.plans, now, size))
    return erased + Erased(fits=erased_asks.erase_fits(project_id, name, now, batch))


def _with_sub_agents(project_id: int, conversation: str) -> list[str]:
    """The conversation, its sub-agents, and theirs."""
    rows = Conversation.objects.filter(project_id=project_id).order_by("id")
    names, found = [conversation], [conversation]
    while found := [
        name
        for name in rows.filter(parent__in=found).values_list("name", flat=True)
        if name not in names
    ]:
        names += found
    return names


def _note(actor: Actor, project: ProjectInfo) -> None:
    """Who erased and when stays, and what people did to it before; its name does not."""
    audit.note(
        actor=actor,
        project_id=project.id,
        kind="conversation",
        action="erased",
        subject=_NAMELESS,
    )


def finish_broken_off(*, project_id: int, now: datetime) -> int:
    """Delete messages that an erasure which broke off has left, as retention does; how many."""
    left = StoredMessage.objects.filter(project_id=project_id, latest_seen_at=UNSEEN)
    seen = dict(left.values_list("hash", "latest_seen_at")[:BATCH_ROWS])
    return _delete_unused(project_id, seen, now) if seen else 0


def _some_calls(row: Conversation, batch: int) -> list[Place]:
    rows = calls_of(row).order_by("-started_at", "-id")
    return [Place(*found) for found in rows.values_list("id", "started_at")[:batch]]


def _erase_calls(project_id: int, places: list[Place], now: datetime, size: StepSize) -> Erased:
    """Calls, the fits made for them, and the messages that only they carried."""
    calls = calls_at(project_id, places)
    fits = frozenset(calls.exclude(fit_name="").values_list("fit_name", flat=True))
    kept = payloads_at(project_id, places).filter(message_hashes__isnull=False)
    lists = kept.values_list("message_hashes", flat=True)
    hashes = frozenset(each for listed in lists for each in listed or ())
    # First the messages: whatever breaks this off later, they are found by the calls again.
    seen = _unsee(project_id, hashes)
    gone = write_and_pause(size.timed(partial(_delete_calls, project_id, places, fits, now)))
    return gone + Erased(messages=_delete_unused(project_id, seen, now))


def _unsee(project_id: int, hashes: frozenset[str]) -> dict[str, datetime]:
    """Have the messages stored anew by whoever meets them from now on; when they were seen.

    A recorder does not write a message that it finds used today. One that looked before this and
    has not ended is waited for: its call is there when `_delete_unused` looks.
    """
    if not hashes:
        return {}

    def mark() -> dict[str, datetime]:
        rows = StoredMessage.objects.filter(project_id=project_id, hash__in=hashes)
        seen = dict(rows.values_list("hash", "latest_seen_at"))
        rows.update(latest_seen_at=UNSEEN)
        return seen

    seen = write(mark)
    wait_for_writers()
    return seen


def _delete_calls(
    project_id: int, places: list[Place], fits: frozenset[str], now: datetime
) -> Erased:
    calls = calls_at(project_id, places)
    note_erased(project_id, calls, now=now)
    named = calls.values_list("name", "id", "started_at")
    delete_names(project_id, {name: Place(pk, at) for name, pk, at in named})
    _delete(payloads_at(project_id, places))
    TrialCall.objects.filter(pk__in=[place.call_id for place in places]).delete()
    made_for = Fit.objects.filter(project_id=project_id, name__in=fits)
    note_erased_fits(project_id, made_for, now=now)
    return Erased(calls=_delete(calls), fits=_delete(made_for))


def _delete_unused(project_id: int, seen: dict[str, datetime], now: datetime) -> int:
    """Delete the messages that no call lists any more; the others get their day back."""
    used = referred_to(project_id, seen)

    def settle() -> int:
        rows = StoredMessage.objects.filter(project_id=project_id, latest_seen_at=UNSEEN)
        for day in {seen[each] for each in used}:
            same = [each for each in used if seen[each] == day]
            # Marked by an erasure that broke off: the day is not known any more.
            rows.filter(hash__in=same).update(latest_seen_at=day if day > UNSEEN else now)
        return _delete(rows.filter(hash__in=seen.keys() - used))

    return write(settle)


def _delete_if_empty(row: Conversation, now: datetime) -> bool:
    """Delete a conversation without calls, with every row that refers to it; False: it has one.

    Locked, as whoever records a call for it does first.
    """
    locked = Conversation.objects.select_for_update().filter(pk=row.pk)
    calls = Call.objects.filter(project_id=row.project_id, conversation_id=row.pk)
    if locked.exists() and calls.exists():
        return False
    _delete_what_refers_to(Conversation, [row.pk], besides=Call)
    # Those of its calls that retention took away, and second names.
    _delete(CallName.objects.filter(project_id=row.project_id, conversation_id=row.pk))
    gone = Conversation.objects.filter(pk=row.pk)
    note_deleted_conversations(row.project_id, gone, now=now)
    _delete(gone)
    return True


def _delete_what_refers_to(
    model: type[models.Model], ids: list[int], *, besides: type[models.Model] | None = None
) -> None:
    """Whatever table it is: one that is added later is erased, too."""
    for other, name in referring(model):
        if other is not besides:
            _delete(other._base_manager.filter(**{f"{name}__in": ids}))


def referring(model: type[models.Model]) -> list[tuple[type[models.Model], str]]:
    """Every model with a foreign key to this one, and the name of that key."""
    # Most keys name no relation back, and count as hidden.
    found = model._meta.get_fields(include_hidden=True)
    relations = [each for each in found if isinstance(each, models.ManyToOneRel)]
    return [(each.related_model, each.field.name) for each in relations]


def _delete(rows: models.QuerySet[models.Model]) -> int:
    """Inside of the database, without loading them; how many. None is what no statement gives."""
    return rows._raw_delete(connection.alias) or 0
