"""One line for a terminal: a conversation's light, how full it is, and what comes next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from helmdash.answers import Doc, JsonName, answer
from helmdash.core.budgets.health import Health
from helmdash.core.budgets.levels import LEVELS, Level, line_of

# A window that a client rounds is no other one.
_SAME_WINDOW = 0.02


@answer("StatusLine")
@dataclass(frozen=True, slots=True, kw_only=True)
class StatusLine:
    """What a status line shows of a conversation; null: not known.

    Tokens. client_window: what the client counts on.
    """

    text: Annotated[str, Doc("The whole line, without color.")]
    level: Level
    prompt_tokens: int | None
    limit_tokens: int | None
    fullness: Annotated[float | None, Doc("Prompt over limit; 1 is full.")]
    round_number: Annotated[int | None, JsonName("round")]
    client_window: int | None
    comes_next: Annotated[str | None, Doc("What comes next, in words.")]


def status_line(
    health: Health | None, *, round_number: int | None, client_window: int | None
) -> StatusLine:
    """The line of a conversation; health None: nothing was recorded of it yet."""
    if health is None:
        return StatusLine(
            text="HelmDash: no call yet",
            level=Level.UNKNOWN,
            prompt_tokens=None,
            limit_tokens=None,
            fullness=None,
            round_number=None,
            client_window=client_window,
            comes_next=None,
        )
    what_next = _next(health)
    parts = [f"HelmDash: {LEVELS[health.level].word}", _size(health), what_next]
    if round_number is not None and round_number > 1:
        parts.append(f"round {round_number}")
    if windows_differ(client_window, health.limit_tokens):
        parts.append(f"client counts on {client_window:,}, budget {health.limit_tokens:,}")
    return StatusLine(
        text=" | ".join(part for part in parts if part),
        level=health.level,
        prompt_tokens=health.prompt_tokens,
        limit_tokens=health.limit_tokens,
        fullness=health.hard_util,
        round_number=round_number,
        client_window=client_window,
        comes_next=what_next,
    )


def windows_differ(client_window: int | None, limit_tokens: int | None) -> bool:
    """Whether a client counts on another window than the budget has; False where one is unknown."""
    if client_window is None or limit_tokens is None:
        return False
    return abs(client_window - limit_tokens) > _SAME_WINDOW * limit_tokens


def _size(health: Health) -> str:
    if health.prompt_tokens is None:
        return ""
    if not health.limit_tokens:
        return f"{health.prompt_tokens:,} tokens"
    # As pages and guidance say it: never rounded up to a line that is not reached.
    percent = health.prompt_tokens * 100 // health.limit_tokens
    return f"{percent}% of {health.limit_tokens:,} tokens"


def _next(health: Health) -> str | None:
    """How far the next line is; over the last one, that it is time to compact."""
    if health.prompt_tokens is None:
        return None
    following = {Level.HEALTHY: Level.CAUTION, Level.CAUTION: Level.CRITICAL}.get(health.level)
    if following is None:
        return "compact now" if health.level is Level.CRITICAL else None
    line = line_of(following, health)
    return None if line is None else f"{line - health.prompt_tokens:,} to {following.value}"
