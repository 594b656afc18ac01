"""Completion: one request for a whole reply that we make ourselves, for planning.

`Complete` is what a face hands down to an operation, so that operations never import the HTTP
client and a test passes a function.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from helmdash.core.calls.capture import Capture


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """A system and a user message for a model, and how its reply is wanted.

    `call_id` names the call in the records. `caches_system`: mark the end of the system message as
    a cacheable prefix where the provider needs to be told. `max_tokens`: output, reasoning
    included.
    """

    call_id: str
    model: str
    system: str
    user: str
    max_tokens: int
    json_mode: bool = False
    caches_system: bool = False


# Never raises for what an upstream does: the capture says what came of it (status, http_status,
# error_code, error_message; content and finish_reason as the provider gave them). Its `id` is the
# call_id. Raises UnknownModel when no upstream serves the model.
Complete = Callable[[Completion], Awaitable[Capture]]


class UnknownModel(Exception):
    """No upstream serves the model; the message says how to name one.

    `advice`: how an upstream comes to be that would serve it, where that is known.
    """

    def __init__(self, model: str, *, advice: str = "") -> None:
        advice = advice or (
            "Write it as provider/model, choose a default upstream for the project, or add an "
            "upstream that lists it."
        )
        super().__init__(f"No upstream serves the model {model!r}. {advice}")
