"""Plans and routes: what is asked for them, and the answer that is given before they are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from helmdash.answers import Doc, Words
from helmdash.api.parsing import Shape
from helmdash.doors.bodies.asks import AskIn

ASK = Shape(AskIn)


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """Work that goes on in the background: ask at the address of `Location` how far it is."""

    plan_id: str
    status: Annotated[str, Words(("running",))]
    progress: Annotated[int, Doc("Percent.")]
