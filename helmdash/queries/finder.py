"""What somebody may mean by some letters: ids that are so or begin so, and models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Final, Literal

from helmdash.records.models import CallName, Conversation, Fit, PlanRecord
from helmdash.records.querysets import distinct_values, starts_with

# What a person looks through; more letters find the others.
MOST_FOUND: Final = 5
# No index finds a part of a conversation's id, nor what a fit's begins with: it is looked for among
# so many of the newest, some milliseconds' work for each letter that is typed.
NEWEST_TRIED: Final = 2_000
_NO_ID_LONGER: Final = 255

Kind = Literal["conversation", "call", "plan", "fit", "model"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One thing of the project; about: its model, or what it was for; "" where that is not told."""

    kind: Kind
    id: str
    about: str = ""


def find(*, project_id: int, text: str) -> tuple[Found, ...]:
    """What is called so, then what begins so, MOST_FOUND of each kind; then conversations and
    models that have the text anywhere. Nothing for a blank text. Ten queries, each by an index and
    with an end."""
    text = text.strip()
    if not text or len(text) > _NO_ID_LONGER or "\x00" in text:
        return ()
    return (
        *_talks(project_id, text),
        *_found("call", text, lambda exact: _calls(project_id, text, exact)),
        *_found("plan", text, lambda exact: _plans(project_id, text, exact)),
        *_found("fit", text, lambda exact: _fits(project_id, text, exact)),
        *_models(project_id, text),
    )


Rows = list[tuple[str, str]]


def _found(kind: Kind, text: str, read: Callable[[bool], Rows]) -> list[Found]:
    """By itself first: among a thousand that begin so, an index gives any five."""
    rows = dict(read(True)) | {name: about for name, about in read(False) if name != text}
    return [Found(kind=kind, id=name, about=about) for name, about in [*rows.items()][:MOST_FOUND]]


def _talks(project_id: int, text: str) -> list[Found]:
    """Conversations that are called so or begin so, then newest ones with the text in their id:
    people remember what they are about, and many begin with what made them."""
    begun = _found("conversation", text, lambda exact: _conversations(project_id, text, exact))
    if len(begun) == MOST_FOUND:
        return begun
    wanted, known = text.lower(), {each.id for each in begun}
    rows = Conversation.objects.filter(project_id=project_id).order_by("-latest_at", "-id")
    # Looked through here: SQLite would walk through all conversations for the newest of them.
    newest = rows.values_list("name", "model")[:NEWEST_TRIED]
    parts = ((name, model) for name, model in newest if wanted in name.lower())
    told = ((name, model) for name, model in parts if name not in known)
    more = islice(told, MOST_FOUND - len(begun))
    return begun + [Found(kind="conversation", id=name, about=model) for name, model in more]


def _conversations(project_id: int, text: str, exact: bool) -> Rows:
    rows = Conversation.objects.filter(project_id=project_id)
    rows = rows.filter(name=text) if exact else rows.filter(starts_with("name", text))
    # In no order: PostgreSQL's index for beginnings has none, and would sort them all.
    return list(rows.order_by().values_list("name", "model")[:MOST_FOUND])


def _calls(project_id: int, text: str, exact: bool) -> Rows:
    rows = CallName.objects.filter(project_id=project_id)
    rows = rows.filter(name=text) if exact else rows.filter(starts_with("name", text))
    return [(name, "") for name in rows.order_by().values_list("name", flat=True)[:MOST_FOUND]]


def _plans(project_id: int, text: str, exact: bool) -> Rows:
    rows = PlanRecord.objects.filter(project_id=project_id)
    rows = rows.filter(name=text) if exact else rows.filter(starts_with("name", text))
    told = rows.order_by().values_list("name", "intent", "model")[:MOST_FOUND]
    return [(name, intent[:80] or model) for name, intent, model in told]


def _fits(project_id: int, text: str, exact: bool) -> Rows:
    rows = Fit.objects.filter(project_id=project_id)
    if exact:
        return list(rows.filter(name=text).values_list("name", "model"))
    newest = rows.order_by("-created_at", "-id").values("id")[:NEWEST_TRIED]
    begun = Fit.objects.filter(id__in=newest).filter(starts_with("name", text)).order_by()
    return list(begun.values_list("name", "model")[:MOST_FOUND])


def _models(project_id: int, text: str) -> list[Found]:
    wanted = text.lower()
    known = distinct_values(project_id, "model_key", most=None)
    found = sorted(
        (key for key in known if wanted in key.lower()), key=lambda key: (key != text, key)
    )
    return [Found(kind="model", id=key) for key in found[:MOST_FOUND]]
