"""Trials of a suggested budget: which conversations it rules, and which today's goes on ruling.

A conversation is in one arm for as long as the trial runs, whoever asks and in whatever process:
the arm is a hash of trial and conversation. Calls that name no conversation are in no trial.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

# Of 16 hexadecimal digits; units are compared and never read, so that a trial keeps no names.
_UNIT_BYTES: Final = 8
_WHOLE: Final = 2.0 ** (8 * _UNIT_BYTES)
# Of filters: a trial's number, and the arm where only one is wanted.
TRIAL_PATTERN: Final = r"^[0-9]{1,18}(:(today|suggested))?$"


class Arm(StrEnum):
    """By which budget a conversation is ruled."""

    TODAY = "today"
    SUGGESTED = "suggested"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRule:
    """A trial that runs: `share` of the conversations (of one) have the columns of the budget of
    this model changed, from `since` on."""

    id: int
    model_key: str
    changes: Mapping[str, str | int | float | bool]
    share: float
    since: datetime

    def arm_of(self, conversation: str) -> Arm:
        """The arm of a conversation: the same each time."""
        at = int(unit_of(self.id, conversation), 16) / _WHOLE
        return Arm.SUGGESTED if at < self.share else Arm.TODAY


@dataclass(frozen=True, slots=True)
class InTrial:
    """The trial that a budget was looked up in, and the arm."""

    trial_id: int
    arm: Arm


@dataclass(frozen=True, slots=True)
class TriedCall:
    """A call in a trial. unit: stands for its conversation, which are compared whole."""

    trial_id: int
    arm: Arm
    unit: str


def unit_of(trial_id: int, conversation: str) -> str:
    """What stands for a conversation in a trial; 16 hexadecimal digits, evenly spread."""
    text = f"{trial_id}:{conversation}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(text).hexdigest()[: 2 * _UNIT_BYTES]


def told(ruled_by: InTrial | None, conversation: str | None) -> str:
    """What a capture says of the trial that its call was ruled in; "": in none."""
    if ruled_by is None or not conversation:
        return ""
    unit = unit_of(ruled_by.trial_id, conversation)
    return f"{ruled_by.trial_id}:{ruled_by.arm.value}:{unit}"


def read_told(text: str) -> TriedCall | None:
    """The other way. None: in no trial, or not a text of `told`."""
    trial_id, _, rest = text.partition(":")
    arm, _, unit = rest.partition(":")
    if not trial_id.isdecimal() or len(trial_id) > 18 or len(unit) != 2 * _UNIT_BYTES:
        return None
    try:
        return TriedCall(int(trial_id), Arm(arm), unit)
    except ValueError:
        return None
