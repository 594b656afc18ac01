"""What remediation knows of a call on its way through the gateway."""

from __future__ import annotations

from dataclasses import dataclass, field

from helmdash.core.care.restarts import Beginning
from helmdash.core.conversations.fingerprints import ChainLinks
from helmdash.gateway.histories.history import History

NONE, GUIDE, CLEAR = "none", "guide", "clear"


@dataclass(slots=True, kw_only=True)
class RemediationState:
    """What remediation knows of one call, and has done for it.

    named: the conversation as the client names it. links: the traces of the request, by which it
    is known where it names none; None: nobody asked for them. is_near: by the newest call's reply,
    which this process has seen. countdown: generations left before a
    fresh start. is_braked: one is due, but remediation has stopped clearing. is_watched: the step
    before the next call will ask for this one's record. beginning: what is left out of
    the client's history, and what stands in its place. may_shorten: no fresh start was made because
    the request was too long.
    """

    history: History
    caller: tuple[int, str]  # project, and the name of the key
    named: str = ""
    links: ChainLinks | None = None
    is_near: bool = False
    is_watched: bool = False
    beginning: Beginning = field(default_factory=Beginning)
    conversation: str | None = None
    action: str = NONE
    round_number: int | None = None
    generation: int | None = None
    countdown: int | None = None
    is_braked: bool = False
    may_shorten: bool = True

    @property
    def key(self) -> tuple[int, str, str]:
        """Under which this process remembers the conversation: its caller, and its own name."""
        return (*self.caller, self.named)
