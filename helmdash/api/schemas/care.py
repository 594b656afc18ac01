"""Care of a conversation: what should happen before a generation, reminders, a fresh start."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, WithJsonSchema
from typing_extensions import TypedDict

from helmdash.api.parsing import Shape
from helmdash.shapes.care import ClearIn, Reminder, ReminderIn, ReminderPatch
from helmdash.shapes.fields import STRICT, ModelId, Positive

ActionText = Annotated[
    str,
    WithJsonSchema({"type": "string", "enum": ["none", "guide", "record_prompt", "clear"]}),
]
StrengthText = Annotated[
    str, WithJsonSchema({"type": "string", "enum": ["soft", "hard", "critical"]})
]


class AdvanceIn(TypedDict, total=False):
    """The generation that is about to start."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    generation: Annotated[
        Positive | None,
        Field(
            description="Its number. Default: one more than the last recorded. Asked again for "
            "the same one, the answer is the same and nothing is counted twice."
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


class Advanced(TypedDict):
    """What to do before the generation."""

    action: Annotated[
        ActionText,
        Field(
            description="none; guide: send `text` with this request only; record_prompt: send "
            "`text` as a user's message that stays; clear: begin anew with `package` and `carry`."
        ),
    ]
    strength: StrengthText | None
    text: str | None
    persist: Annotated[bool, Field(description="Whether `text` belongs into the history.")]
    remaining: Annotated[int | None, Field(description="Generations left until the clear.")]
    round: int
    carry: Annotated[
        list[str], Field(description="On clear: the user's texts to send again, as they came.")
    ]
    package: Annotated[str | None, Field(description="On clear: the re-entry package.")]
    generation: int
    reason: Annotated[str, Field(description="Why, in a sentence.")]


class ReminderList(TypedDict):
    """All reminders of a conversation, by position."""

    items: list[Reminder]


ADVANCE = Shape(AdvanceIn)
CLEAR = Shape(ClearIn)
ADD = Shape(ReminderIn)
CHANGE = Shape(ReminderPatch)
