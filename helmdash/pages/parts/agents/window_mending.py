"""A client that counts on another window than its model's budget has, and what mends that."""

from __future__ import annotations

from dataclasses import dataclass

from helmdash.core.agents.status_line import windows_differ
from helmdash.core.budgets.budgets import EffectiveBudget
from helmdash.pages.parts.agents.claude_code import claude_variables
from helmdash.pages.parts.agents.table import AGENTS
from helmdash.pages.parts.agents.wiring import Wiring


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowMending:
    """What mends that a client counts on another window than the budget has.

    setting: a line for the client; "": it has none. connect: the client's id on the page Connect.
    """

    client: str
    client_window: int
    limit_tokens: int
    setting: str
    connect: str


def window_mending(
    *, client_name: str, client_window: int | None, model: str, budget: EffectiveBudget
) -> WindowMending | None:
    """What to tell where a client's window and its model's budget disagree; None: they do not, or
    one is not known."""
    limit = budget.limit_tokens
    if client_window is None or limit is None or not windows_differ(client_window, limit):
        return None
    agent = next((each for each in AGENTS if client_name in each.clients), None)
    wiring = Wiring(
        base="", key=None, model=model, window=limit, compacts_at=budget.critical_max_tokens
    )
    setting = ""
    if agent is not None and agent.id == "codex":
        setting = f"model_context_window = {limit}"
    elif agent is not None and agent.id == "claude-code":
        told = claude_variables(wiring)
        names = ("CLAUDE_CODE_MAX_CONTEXT_TOKENS", "CLAUDE_CODE_AUTO_COMPACT_WINDOW")
        wanted = [name for name in names if name in told]
        if told.get("ANTHROPIC_MODEL", "").endswith("[1m]"):
            wanted.insert(0, "ANTHROPIC_MODEL")
        setting = " ".join(f"{name}={told[name]}" for name in wanted)
    return WindowMending(
        client=agent.name if agent else client_name,
        client_window=client_window,
        limit_tokens=limit,
        setting=setting,
        connect=agent.id if agent else "",
    )
