"""The words of a guidance: the project's own, else the shipped ones, with the figures of now."""

from __future__ import annotations

from helmdash.core.care.guidance import GuidanceFacts, brake_text, render
from helmdash.core.care.remediation import GRACE, Decision
from helmdash.operations.care.locked_conversation import LockedConversation, Reading
from helmdash.records.statements.steps import find_own_text


def text_of(
    decision: Decision, locked: LockedConversation, reading: Reading, *, generation: int
) -> str:
    """The text of a decision; empty where it has none. One query where there is one."""
    if decision.strength is None:
        return ""
    if decision.is_brake:
        return brake_text(locked.row.name)
    row, budget, snapshot = locked.row, reading.budget, reading.snapshot
    reminders, own = find_own_text(row, decision.strength.value)
    facts = GuidanceFacts(
        conversation=row.name,
        generation=generation,
        round_number=row.round_number,
        prompt_tokens=snapshot.prompt_tokens if snapshot else None,
        limit_tokens=budget.limit_tokens,
        optimal_max_tokens=budget.optimal_max_tokens,
        critical_max_tokens=budget.critical_max_tokens,
        remaining=decision.remaining,
        grace_left=decision.grace_left,
        grace=GRACE,
        cadence=budget.caution_cadence,
        reminders=reminders,
    )
    return render(decision.strength, facts, own)
