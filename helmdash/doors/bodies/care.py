"""Care of a conversation as programs ask for it and get it: reminders, clears, remediation."""

from __future__ import annotations

from typing import Annotated, Literal, Required

from pydantic import Field, StringConstraints
from typing_extensions import TypedDict

from helmdash.doors.bodies.fields import STRICT, SmallPositive

# A reminder of about 5,000 tokens is a document, not a note; operations.care says the same.
REMINDER_CHARS = 20_000

Content = Annotated[
    str,
    StringConstraints(
        min_length=1, max_length=REMINDER_CHARS, strip_whitespace=True, pattern=r"\S"
    ),
]
Kind = Literal["note", "re_entry"]
KIND_MEANING = "note (default), or re_entry: written for the time after a fresh start."
POSITION_MEANING = "From 1; default: the last. Beyond the end means the last."


class ReminderIn(TypedDict, total=False):
    """A note that is to survive a fresh start."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    content: Required[Content]
    kind: Annotated[Kind | None, Field(description=KIND_MEANING)]
    position: Annotated[SmallPositive | None, Field(description=POSITION_MEANING)]


class ReminderPatch(TypedDict, total=False):
    """What changes about a reminder. Null and left out mean the same: as it is."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    content: Content | None
    kind: Kind | None
    position: Annotated[SmallPositive | None, Field(description="From 1: where it moves to.")]


class ClearIn(TypedDict, total=False):
    """A fresh start that somebody asks for."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    reminder_content: Annotated[
        Annotated[str, StringConstraints(max_length=REMINDER_CHARS, strip_whitespace=True)] | None,
        Field(description="Kept as one more reminder first, so that the package has it."),
    ]


class ReminderArguments(TypedDict):
    """The part of the arguments of `operations.care.add_reminder` that a body has."""

    content: str
    kind: str
    position: int | None


class ReminderChanges(TypedDict):
    """The part of the arguments of `operations.care.update_reminder` that a body has."""

    content: str | None
    kind: str | None
    position: int | None


def reminder_arguments(given: ReminderIn) -> ReminderArguments:
    """The body as `add_reminder` takes it."""
    return {
        "content": given["content"],
        "kind": given.get("kind") or "note",
        "position": given.get("position"),
    }


def reminder_changes(given: ReminderPatch) -> ReminderChanges:
    """The body as `update_reminder` takes it."""
    return {
        "content": given.get("content"),
        "kind": given.get("kind"),
        "position": given.get("position"),
    }
