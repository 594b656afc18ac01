"""Care of a conversation: what should happen before a generation, reminders, a fresh start."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from helmdash.api.parsing import Shape
from helmdash.doors.bodies.care import ClearIn, ReminderIn, ReminderPatch
from helmdash.doors.bodies.fields import STRICT, ModelId, Positive


class AdvanceIn(TypedDict, total=False):
    """The generation that is about to start."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    generation: Annotated[
        Positive | None,
        Field(
            description="Its number. Default: one more than the last recorded. Asked again for "
            "the same one, the response is the same and nothing is counted twice."
        ),
    ]
    has_user_prompt: Annotated[
        bool | None,
        Field(description="Whether it has a prompt of the user. A `user_prompt` says so, too."),
    ]
    user_prompt: Annotated[
        str | None,
        Field(
            description="The user's text. Kept to the letter, sealed, until a reply answers it; "
            "a clear carries it over."
        ),
    ]
    model: Annotated[
        ModelId | None,
        Field(description="The model it goes to. Default: that of the newest call."),
    ]


ADVANCE = Shape(AdvanceIn)
CLEAR = Shape(ClearIn)
ADD = Shape(ReminderIn)
CHANGE = Shape(ReminderPatch)
