"""Reads that tell of the gateway's newest calls, whose clients had their answers before the calls
were stored (ADR 11): an agent asks for its own call, or how full it is now, at once."""

from __future__ import annotations

from helmdash.operations.recorder.facade import recorder

# A commit takes milliseconds.
_WITHIN_S = 1.0


def wait_for_call(project_id: int, call_id: str) -> None:
    """Let a call that was answered a moment ago be stored, if this process had it."""
    recorder().wait_for(project_id, lambda capture: capture.id == call_id, seconds=_WITHIN_S)


def wait_for_conversation(project_id: int, name: str) -> None:
    """Let the calls of a conversation be stored that were answered a moment ago and name it."""
    recorder().wait_for(project_id, lambda capture: capture.conversation == name, seconds=_WITHIN_S)
