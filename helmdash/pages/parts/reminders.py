"""The reminders of a conversation as its page shows them, with the package they make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from helmdash.core.budgets.budgets import EffectiveBudget
from helmdash.core.care.reminders import Note, Package, build_package, package_bytes
from helmdash.pages.render import etag, minute
from helmdash.queries.budgets import budgets
from helmdash.queries.conversations import conversations
from helmdash.queries.conversations.care import ReminderView, reminders
from helmdash.queries.conversations.conversations import ConversationView


@dataclass(frozen=True, slots=True, kw_only=True)
class Typed:
    """What a form said; `problem` is why it could not be kept.

    updated_at: when the reminder it changes was written, as its page showed it.
    """

    do: str = ""
    id: str = ""
    kind: str = "note"
    content: str = ""
    updated_at: str = ""
    problem: str = ""

    def because(self, problem: str) -> Typed:
        """The same words, with the sentence why they were refused."""
        return replace(self, problem=problem)


@dataclass(frozen=True, slots=True, kw_only=True)
class Notes:
    """Reminders, the package that a round would begin with now, and its bound (bytes).

    next_round: the one after the open round, or the open one itself while it has no call.
    """

    conversation: str
    next_round: int
    is_open: bool
    items: tuple[ReminderView, ...]
    package: Package
    most_bytes: int
    etag: str
    typed: Typed = field(default_factory=Typed)

    @property
    def package_bytes(self) -> int:
        """UTF-8 bytes of the package as it would be now."""
        return len(self.package.text.encode())

    @property
    def left_out(self) -> int:
        """How many reminders do not go into the package whole."""
        return len(self.package.left_out)


def notes_of(
    *, project_id: int, conversation: str, now: datetime, typed: Typed | None = None
) -> Notes | None:
    """The part of the page about reminders. None: there is no such conversation."""
    standing = conversations.standing(project_id=project_id, conversation_id=conversation)
    if standing is None:
        return None
    rules = budgets.table(project_id=project_id).for_conversation(conversation)
    budget = rules.lookup(standing.model)
    items = reminders(project_id=project_id, conversation=conversation) or ()
    return notes_at(standing, items, budget=budget, now=now, typed=typed)


def notes_at(
    standing: ConversationView,
    items: Sequence[ReminderView],
    *,
    budget: EffectiveBudget,
    now: datetime,
    typed: Typed | None = None,
) -> Notes:
    """As `notes_of`, for a conversation that has been read already. typed None: no form came
    back."""
    most = package_bytes(budget)
    is_open = standing.is_round_empty
    number = standing.round_number + (0 if is_open else 1)
    package = build_package(
        [Note(id=each.id, kind=each.kind, content=each.content) for each in items],
        max_bytes=most,
        round_number=number,
    )
    return Notes(
        conversation=standing.id,
        next_round=number,
        is_open=is_open,
        items=tuple(items),
        package=package,
        most_bytes=most,
        etag=etag(standing.id, f"{items}{most}{number}{is_open}{minute(now)}"),
        typed=typed or Typed(),
    )
