"""Where something was due a moment ago, the step is taken without a look first."""

from __future__ import annotations

from helmdash.gateway.remediation.due_steps import DueSteps

ME, OTHER = (1, "me"), (1, "other")


def test_a_conversation_that_took_a_step_takes_some_more_and_then_there_is_a_look() -> None:
    due = DueSteps()
    assert not due.is_due(ME, "talk")

    due.note(ME, "talk", is_over=False)

    assert [due.is_due(ME, "talk") for _ in range(8)] == [True] * 7 + [False]
    assert not due.is_due(OTHER, "talk")


def test_a_clear_ends_what_was_due() -> None:
    due = DueSteps()
    due.note(ME, "talk", is_over=False)
    due.note(ME, "talk", is_over=True)

    assert not due.is_due(ME, "talk")


def test_the_oldest_are_forgotten() -> None:
    due = DueSteps(most=2)
    for name in ("a", "b", "c"):
        due.note(ME, name, is_over=False)

    assert [due.is_due(ME, name) for name in ("a", "b", "c")] == [False, True, True]
