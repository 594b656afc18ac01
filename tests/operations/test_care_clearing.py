"""Fresh starts: what closes, what is carried over to the byte, and what cannot come back."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helmdash.core.calls.capture import SentSizes
from helmdash.core.care.reminders import HEADINGS, package_bytes
from helmdash.operations import care
from helmdash.operations.care import ClientHistory, Restart
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.budgets import budgets
from helmdash.records.models import (
    Conversation,
    Guidance,
    PendingPrompt,
    Reminder,
    Round,
)
from tests.operations.care_support import OVERFLOW, Talk, short
from tests.recording.support import CRITICAL, HEALTHY, make_ruled_project


@pytest.fixture
def project(db: None) -> ProjectInfo:
    return make_ruled_project()


@pytest.fixture
def talk(project: ProjectInfo) -> Talk:
    """Its newest call is critical, and nothing was said about it yet."""
    talk = Talk(project)
    talk.turns(HEALTHY, 2)
    talk.turn(CRITICAL)
    return talk


@pytest.fixture
def at_zero(talk: Talk) -> Talk:
    """The countdown has run out."""
    talk.turns(CRITICAL, 5)
    return talk


def history(messages: int, **over: object) -> ClientHistory:
    told = ClientHistory(
        messages=messages,
        digest=lambda: f"digest-{messages}",
        carried=lambda: (messages - 1,),
        draft=lambda: {"Current progress": "Half of it is done."},
    )
    return replace(told, **over)  # type: ignore[arg-type]


# --- the user's texts

ODD_TEXTS = [
    "  spaces, \ttabs \r\n and a line end \n",
    "Grüße, 你好, 🙂‍↔️, e\u0301",
    "half a pair \ud83d and a NUL \0",
    "{conversation} %s {{",
    "x" * 100_000,
]


# Fault 1: the user's message is lost at the automatic clear. Fault 15: it is changed.
@pytest.mark.parametrize("text", ODD_TEXTS, ids=range(len(ODD_TEXTS)))
def test_a_user_prompt_at_zero_is_carried_over_to_the_byte(at_zero: Talk, text: str) -> None:
    told = at_zero.advance(user_prompt=text)

    assert (told.action, told.carry) == ("clear", (text,))
    assert text not in (told.package or "")


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(text=st.text(st.characters(exclude_categories=()), min_size=1))
def test_any_text_is_carried_over_to_the_byte(db: None, text: str) -> None:
    project = make_ruled_project(slug=f"p{Conversation.objects.count()}")
    talk = Talk(project, name=f"t{Conversation.objects.count()}")
    talk.call(HEALTHY)

    talk.advance(user_prompt=text)

    assert talk.clear().carried == (text,)


# Fault 2: a queued message is overwritten by the clear. Fault 20: it is wiped unanswered.
def test_texts_wait_through_tool_calls_and_failures(talk: Talk) -> None:
    talk.advance(user_prompt="First.")
    talk.call(CRITICAL, finish_reason="tool_calls")
    talk.advance()
    talk.call(None, http_status=500, status="error", finish_reason=None)
    talk.advance(user_prompt="Second.")
    talk.call(None, status="cancelled", finish_reason=None, http_status=None)

    cleared = talk.clear()

    assert cleared.carried == ("First.", "Second.")


def test_an_answered_text_is_not_carried(talk: Talk) -> None:
    talk.turn(CRITICAL, user_prompt="Answered.")
    talk.advance(user_prompt="Open.")

    assert talk.clear().carried == ("Open.",)


def test_texts_stay_pending_in_the_new_round_until_they_are_answered(at_zero: Talk) -> None:
    at_zero.advance(user_prompt="Go on.")
    at_zero.call(HEALTHY, finish_reason="tool_calls")
    again = at_zero.clear()
    at_zero.call(HEALTHY)
    answered = at_zero.clear()

    assert again.carried == ("Go on.",)
    assert answered.carried == ()
    assert not PendingPrompt.objects.exists()


def test_two_texts_for_one_generation_are_both_kept_and_one_sent_again_is_one(
    at_zero: Talk,
) -> None:
    first = at_zero.advance(user_prompt="Go on.")
    again = at_zero.advance(generation=first.generation, user_prompt="Go on.")
    other = at_zero.advance(generation=first.generation, user_prompt="Go on!")

    assert first.carry == again.carry == ("Go on.",)
    assert other.carry == ("Go on.", "Go on!")


def test_a_text_said_again_waits_for_the_later_reply(talk: Talk) -> None:
    talk.advance(user_prompt="Go on.")
    talk.advance(generation=5, user_prompt="Go on.")
    talk.call(CRITICAL)  # the reply to the first, reported late

    assert talk.clear().carried == ("Go on.",)


def test_two_workers_may_ask_again_in_any_order(talk: Talk) -> None:
    told = [talk.advance(generation=4, user_prompt=text) for text in ("A", "B", "A", "B")]

    assert {each.generation for each in told} == {4}
    assert talk.clear().carried == ("A", "B")


def test_a_text_that_is_tried_again_after_a_failure_is_carried_once(talk: Talk) -> None:
    for _ in range(2):
        talk.advance(user_prompt="Go on.")
        talk.call(None, http_status=500, status="error")

    assert talk.clear().carried == ("Go on.",)


def test_a_text_from_before_the_first_call_is_known(project: ProjectInfo) -> None:
    talk = Talk(project)
    talk.advance(user_prompt="Hello.")
    talk.call(HEALTHY, finish_reason="tool_calls")

    assert talk.clear().carried == ("Hello.",)


def test_stored_texts_are_sealed(talk: Talk) -> None:
    talk.advance(user_prompt="My secret.")

    assert "secret" not in PendingPrompt.objects.get().text


def test_a_prompt_without_its_text_is_counted_all_the_same(at_zero: Talk) -> None:
    told = at_zero.advance(has_user_prompt=True)

    assert (told.action, told.carry) == ("clear", ())


# --- the clear that somebody asks for


# Fault 3: the model obeys the last reminder, clears, and is cleared a second time.
def test_a_clear_during_the_countdown_is_not_followed_by_a_second(at_zero: Talk) -> None:
    cleared = at_zero.clear(reminder_content="Goal: ship it.")
    told = at_zero.turns(HEALTHY, 8)

    assert (cleared.round_number, cleared.is_new) == (2, True)
    assert told == ["none"] * 8
    assert Round.objects.count() == 2


# Faults 3 and 4: the report of the call under way brings the old level back.
@pytest.mark.parametrize("says_when", [True, False], ids=["with its time", "without"])
def test_a_late_report_after_a_clear_does_not_touch_the_new_round(
    talk: Talk, says_when: bool
) -> None:
    talk.turns(CRITICAL, 4)
    last = talk.advance()
    began = talk.tick()
    cleared = talk.clear()
    late = talk.call(CRITICAL, started_at=began if says_when else None)
    told = talk.advance()

    assert (short(last), cleared.round_number) == ("0", 2)
    assert late.round_number == 1
    assert (told.action, told.round_number) == ("none", 2)
    row = Conversation.objects.get()
    assert (row.level, row.round_number, row.is_round_empty) == ("unknown", 2, True)
    answer = talk.call(HEALTHY)
    assert answer.round_number == 2
    assert [r.first_generation for r in Round.objects.order_by("number")] == [1, 9]


def test_a_short_call_without_a_time_is_the_first_of_the_new_round(talk: Talk) -> None:
    talk.advance()
    talk.clear()

    assert talk.call(HEALTHY, started_at=None).round_number == 2


def test_clearing_an_empty_round_gives_the_same_again(talk: Talk) -> None:
    talk.remind("Keep this.")
    first = talk.clear(reminder_content="And this.")
    again = talk.clear(reminder_content="And this.")

    assert (first.is_new, again.is_new) == (True, False)
    assert (again.round_number, again.package) == (first.round_number, first.package)
    assert Reminder.objects.count() == 2
    assert Round.objects.count() == 2


def test_a_reminder_that_comes_with_a_second_clear_is_in_the_package(talk: Talk) -> None:
    first = talk.clear(client=history(9))
    again = talk.clear(reminder_content="Remember the tests.")

    assert "Half of it is done." in first.package
    assert "Remember the tests." not in first.package
    assert "Half of it is done." in again.package
    assert "Remember the tests." in again.package
    assert care.restart_of(project=talk.project, conversation="talk") == again.restart


@pytest.mark.parametrize("content", [None, "", " \n\t"])
def test_a_blank_last_reminder_is_none(talk: Talk, content: str | None) -> None:
    talk.clear(reminder_content=content)

    assert not Reminder.objects.exists()


def test_the_last_reminder_is_a_re_entry_reminder(talk: Talk) -> None:
    cleared = talk.clear(reminder_content="  Goal: ship it.  ")

    row = Reminder.objects.get()
    assert (row.kind, row.content, row.position) == ("re_entry", "Goal: ship it.", 1)
    assert "ship it." in cleared.package


def test_a_clear_by_the_agent_follows_what_it_was_told(talk: Talk) -> None:
    talk.turns(CRITICAL, 2)
    talk.clear()

    told = Guidance.objects.exclude(action="clear")
    assert all(row.followed_at for row in told)
    row = Guidance.objects.get(action="clear")
    assert (row.round_number, row.strength, row.reason) == (1, "", "clear_mind")


def test_a_healthy_conversation_can_be_cleared(project: ProjectInfo) -> None:
    talk = Talk(project)
    talk.call(HEALTHY)

    assert talk.clear().round_number == 2
    assert talk.clear().is_new is False


def test_nobody_knows_the_conversation(project: ProjectInfo) -> None:
    with pytest.raises(care.NoConversation):
        Talk(project).clear()


def test_a_last_reminder_that_cannot_be_stored_stops_the_clear(talk: Talk) -> None:
    with pytest.raises(care.CareProblem) as caught:
        talk.clear(reminder_content="x" * 20_001)

    assert caught.value.field == "reminder_content"
    assert Conversation.objects.get().round_number == 1


def test_the_package_has_six_headings_within_a_fifth_of_the_window(talk: Talk) -> None:
    for number in range(20):
        talk.remind(f"{number}: " + "word " * 3_000)

    package = talk.clear().package

    budget = budgets.table(project_id=talk.project.id).lookup("openai/gpt-4o")
    assert len(package.encode()) <= package_bytes(budget)
    assert [package.index(heading) for heading in HEADINGS] == sorted(
        package.index(heading) for heading in HEADINGS
    )


# --- a gateway that rebuilds its client's requests


def test_a_gateway_is_told_how_to_go_on(at_zero: Talk) -> None:
    told = at_zero.advance(user_prompt="Go on.", client=history(21))

    assert told.restart == Restart(
        messages=21,
        digest="digest-21",
        carried=(20,),
        package=told.package or "",
        inserts=(),
    )
    assert "Half of it is done." in (told.package or "")
    assert care.restart_of(project=at_zero.project, conversation="talk") == told.restart
    assert at_zero.advance(generation=told.generation, client=history(21)).restart == told.restart


def test_recorded_prompts_keep_their_places_in_the_history(talk: Talk) -> None:
    first = talk.turn(CRITICAL, client=history(7))
    talk.turn(CRITICAL, client=history(9), user_prompt="A question.")
    third = talk.turn(CRITICAL, client=history(11))

    restart = care.restart_of(project=talk.project, conversation="talk")

    assert restart is not None
    assert (restart.messages, restart.package) == (0, "")
    assert restart.inserts == ((7, first.text), (11, third.text))
    assert third.restart == restart


def test_prompts_of_a_closed_round_are_not_inserted_any_more(talk: Talk) -> None:
    talk.turn(CRITICAL, client=history(7))
    talk.clear(client=history(9))

    restart = care.restart_of(project=talk.project, conversation="talk")

    assert restart is not None
    assert restart.inserts == ()


def test_a_client_without_a_clear_has_nothing_to_restart(project: ProjectInfo) -> None:
    talk = Talk(project)
    talk.turn(HEALTHY, client=history(3))

    assert care.restart_of(project=project, conversation="talk") is None
    assert care.restart_of(project=project, conversation="nobody") is None


def test_an_overflow_that_a_gateway_sees_itself_is_cleared_and_tried_again(talk: Talk) -> None:
    told = talk.advance(client=history(9))
    cleared = talk.clear(client=history(9), reason="overflow", generation=told.generation)
    refused = talk.call(None, round_number=1, **OVERFLOW)
    retried = talk.call(HEALTHY, round_number=2)

    assert (refused.round_number, retried.round_number) == (1, cleared.round_number)
    assert [row.first_generation for row in Round.objects.order_by("number")] == [1, 5]
    assert talk.turns(HEALTHY, 2) == ["none", "none"]
    # What the first try was to be told was never sent.
    assert not Guidance.objects.filter(action="record_prompt").exists()


def test_several_clears_in_one_conversation_lose_no_text(talk: Talk) -> None:
    clears = 0
    for number in range(40):
        # Every other reply calls tools, so that two texts wait for the next one.
        first, second = f"Question {number}.", f"And {number}?"
        one = talk.advance(user_prompt=first)
        talk.call(CRITICAL, finish_reason="tool_calls")
        other = talk.advance(user_prompt=second)
        talk.call(CRITICAL)
        clears += [one.action, other.action].count("clear")
        assert one.action != "clear" or one.carry == (first,)
        assert other.action != "clear" or other.carry == (first, second)

    assert clears == Conversation.objects.get().round_number - 1 == 13


def test_an_answered_text_is_not_carried_whatever_the_caller_counts_by(talk: Talk) -> None:
    for number in range(3):
        told = talk.advance(generation=500 + number, user_prompt=f"text {number}")
        talk.call(CRITICAL)
        assert told.generation == 500 + number

    assert talk.clear().carried == ()


def test_a_generation_far_ahead_is_refused(talk: Talk) -> None:
    with pytest.raises(care.CareProblem) as problem:
        talk.advance(generation=2**53)

    assert problem.value.field == "generation"
    assert talk.advance().generation == 4


def test_an_overflow_says_nothing_about_a_request_that_is_far_smaller(project: ProjectInfo) -> None:
    talk = Talk(project)
    talk.turns(HEALTHY, 2)
    talk.call(None, **OVERFLOW, sent=SentSizes(bytes=10_000))
    asked: list[Restart | None] = []

    def sent_bytes(restart: Restart | None) -> int:
        asked.append(restart)
        return 7_000

    told = talk.advance(client=history(5), sent_bytes=sent_bytes)

    assert (told.action, asked) == ("none", [None])


def test_an_overflow_is_cleared_where_the_request_is_nearly_as_large(project: ProjectInfo) -> None:
    talk = Talk(project)
    talk.turns(HEALTHY, 2)
    talk.call(None, **OVERFLOW, sent=SentSizes(bytes=10_000))

    assert talk.advance(client=history(5), sent_bytes=lambda _: 7_001).action == "clear"


def test_the_sizes_of_the_call_before_are_told_within_a_round(talk: Talk) -> None:
    talk.turn(HEALTHY, client=history(3))
    talk.call(HEALTHY, sent=SentSizes(bytes=4_000))

    newest = talk.advance(client=history(7)).newest

    assert newest is not None
    assert (newest.prompt_tokens, newest.sent_bytes) == (HEALTHY, 4_000)


def test_a_clear_asked_for_elsewhere_tells_of_texts_that_are_not_carried(talk: Talk) -> None:
    talk.clear()
    told = talk.advance(client=history(9, earlier=lambda: "Earlier user messages:\n- Do it."))

    assert told.restart is not None
    assert told.restart.package.endswith("Earlier user messages:\n- Do it.")
    again = talk.advance(client=history(9, earlier=lambda: "Earlier user messages:\n- Do it."))
    assert again.restart == told.restart
