"""Whole sequences of care, generation by generation, with the database as the only memory.

Source: "Context Health Monitor" (docs/sources.md).
"""

from __future__ import annotations

import pytest

from helmdash.core.access.permissions import SHELL
from helmdash.core.budgets.levels import Level
from helmdash.operations import care
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.budgets.budgets import forget_cache
from helmdash.queries.conversations.care import care_of
from helmdash.records.models import Budget, Call, Conversation, Guidance, Project, Round
from tests.factories import NOW
from tests.operations.care_support import OVERFLOW, Talk, short
from tests.recording.support import CAUTION, CRITICAL, HEALTHY, make_ruled_project


@pytest.fixture
def project(db: None) -> ProjectInfo:
    return make_ruled_project()


@pytest.fixture
def talk(project: ProjectInfo) -> Talk:
    """Two healthy calls behind it."""
    talk = Talk(project)
    talk.turns(HEALTHY, 2)
    return talk


def critical(talk: Talk) -> Talk:
    """The newest call is critical, and nothing was said about it yet."""
    talk.turn(CRITICAL)
    return talk


def test_caution_is_soft_three_times_then_hard_then_hard_at_each_cadence(talk: Talk) -> None:
    talk.turn(CAUTION)

    told = talk.turns(CAUTION, 25)

    quiet = ["none"] * 9
    assert told == ["soft"] * 3 + ["hard", *quiet, "hard", *quiet, "hard", "none"]
    texts = [each.text or "" for each in talk.told if each.strength == "soft"]
    assert len(set(texts)) == 3
    assert not any(each.persist for each in talk.told)


# Fault 5: four prompts instead of five.
def test_critical_counts_from_four_to_zero_and_clears_at_the_sixth(talk: Talk) -> None:
    critical(talk)

    told = talk.turns(CRITICAL, 5)
    last = talk.advance()

    assert told == ["4", "3", "2", "1", "0"]
    assert (last.action, last.round_number, last.remaining) == ("clear", 2, 0)
    assert last.package
    assert last.text is None
    assert all(each.persist and each.text for each in talk.told[-6:-1])
    rows = Guidance.objects.order_by("generation")
    assert [(row.generation, row.action, row.remaining) for row in rows] == [
        *((4 + n, "record_prompt", 4 - n) for n in range(5)),
        (9, "clear", 0),
    ]


def test_a_clear_closes_the_round_and_opens_an_empty_one(talk: Talk) -> None:
    critical(talk).turns(CRITICAL, 5)
    talk.advance()

    row = Conversation.objects.get()
    first, second = Round.objects.order_by("number")
    assert (row.round_number, row.generation, row.is_round_empty) == (2, 8, True)
    assert (row.level, row.known_level, row.prompt_tokens) == ("unknown", "", None)
    assert row.level_reason == "usage_unavailable"
    assert row.cleared_at == first.ended_at == second.started_at == talk.at
    assert row.late_until == 8
    assert (second.opened_by, second.first_generation) == ("clear", 9)


def test_after_a_clear_the_next_round_starts_from_rest(talk: Talk) -> None:
    critical(talk).turns(CRITICAL, 5)
    talk.advance()
    answer = talk.call(HEALTHY)

    assert (answer.round_number, answer.generation) == (2, 9)
    assert talk.turns(HEALTHY, 3) == ["none"] * 3
    assert [row.first_generation for row in Round.objects.order_by("number")] == [1, 9]


# Fault 10: the countdown, the cadence and the grace live in memory only.
def test_a_restart_in_the_middle_goes_on_where_it_stood(talk: Talk) -> None:
    talk.turn(CAUTION)
    before = [*talk.turns(CAUTION, 2)]
    # Another process: nothing but the database is left.
    forget_cache()
    again = Talk(talk.project, at=talk.at)
    after = again.turns(CAUTION, 3)
    again.turn(CRITICAL)
    counted = again.turns(CRITICAL, 3)
    forget_cache()
    last = Talk(talk.project, at=again.at)

    assert (before, after) == (["soft", "soft"], ["soft", "hard", "none"])
    assert counted == ["4", "3", "2"]
    assert last.turns(CRITICAL, 3) == ["1", "0", "clear"]


# Fault 9: critical and unavailable in turn restart at five for ever.
def test_unknown_freezes_the_countdown_and_does_not_reset_it(talk: Talk) -> None:
    critical(talk)

    told = []
    for _ in range(5):
        told.append(short(talk.turn(None)))
        told.append(short(talk.turn(CRITICAL)))

    assert told == ["4", "none", "3", "none", "2", "none", "1", "none", "0", "none"]
    assert talk.advance().action == "clear"


# Fault 9: no hysteresis, so that flapping prompts at every entry.
def test_flapping_around_a_line_is_one_stay_above_it(talk: Talk) -> None:
    just_under = 98_000
    talk.turn(CAUTION)

    told = [short(talk.turn(just_under if n % 2 else CAUTION)) for n in range(6)]

    assert told == ["soft", "soft", "soft", "hard", "none", "none"]


@pytest.mark.parametrize(
    ("prompt", "told"),
    [
        # below 95 % of the critical line: caution, whose grace begins
        (109_000, ["4", "soft", "soft"]),
        # just under it: critical still, until a second one in a row
        (114_000, ["4", "3", "soft"]),
        # far below both lines
        (20_000, ["4", "none", "none"]),
    ],
)
def test_critical_is_left_only_well_below_its_line(
    talk: Talk, prompt: int, told: list[str]
) -> None:
    critical(talk)

    assert talk.turns(prompt, 3) == told


# Fault 7: tool loops that a user started never count down.
def test_a_tool_loop_of_thirteen_calls_is_counted_and_cleared(talk: Talk) -> None:
    critical(talk)

    told = []
    for _ in range(13):
        told.append(short(talk.advance()))
        tokens = HEALTHY if "clear" in told else CRITICAL
        talk.call(tokens, finish_reason="tool_calls")

    assert told == ["4", "3", "2", "1", "0", "clear", *["none"] * 7]


# Fault 8: messages that come while no generation runs burn the countdown.
def test_messages_without_a_generation_count_nothing(talk: Talk) -> None:
    critical(talk)

    told = [talk.advance(generation=4, user_prompt=f"And {n}?") for n in range(5)]

    assert [short(each) for each in told] == ["4u"] * 5
    assert [each.is_repeat for each in told] == [False, True, True, True, True]
    assert short(talk.turn(CRITICAL, generation=5)) == "3"


def test_a_generation_is_counted_once_however_often_it_is_asked_for(talk: Talk) -> None:
    critical(talk)
    first = talk.advance()
    again = talk.advance()

    assert (first.is_repeat, again.is_repeat) == (False, True)
    assert (again.action, again.text, again.remaining, again.persist) == (
        first.action,
        first.text,
        first.remaining,
        first.persist,
    )
    assert Guidance.objects.count() == 1


# Fault 6: the notice of the new round is delivered twice.
def test_a_repeated_clear_gives_the_same_round_and_package(talk: Talk) -> None:
    talk.remind("Goal: ship it.")
    critical(talk).turns(CRITICAL, 5)
    first = talk.advance(user_prompt="Go on.")
    talk.remind("Written later.")
    again = talk.advance(generation=first.generation, user_prompt="Go on.")

    assert again.is_repeat
    assert (again.action, again.round_number) == ("clear", 2)
    assert (again.package, again.carry) == (first.package, ("Go on.",))
    assert Round.objects.count() == 2


def test_a_repeat_of_what_was_told_in_a_closed_round_says_nothing(talk: Talk) -> None:
    critical(talk)
    told = talk.advance()
    talk.clear()

    again = talk.advance(generation=told.generation)

    assert (again.action, again.round_number, again.is_repeat) == ("none", 2, True)


def test_a_user_prompt_in_critical_is_guided_and_counted(talk: Talk) -> None:
    critical(talk)

    told = talk.turn(CRITICAL, user_prompt="What now?")

    assert (told.action, told.persist, told.remaining) == ("guide", False, 4)
    assert "What now?" not in (told.text or "")
    assert told.carry == ()
    assert short(talk.turn(CRITICAL)) == "3"


# Fault 17: the old model's thresholds govern the next decision.
def test_a_model_switch_counts_before_its_first_call(talk: Talk) -> None:
    critical(talk)

    wider = talk.advance(model="anthropic/claude-sonnet-4")
    back = talk.advance(generation=5, model="openai/gpt-4o")

    assert short(wider) == "soft"  # 115,201 of 200,000: caution
    assert short(back) == "4"


def test_an_edited_budget_counts_from_the_next_generation(talk: Talk) -> None:
    talk.turn(HEALTHY)
    assert short(talk.turn(HEALTHY)) == "none"
    row = Budget.objects.get(key="openai/gpt-4o")
    row.optimal_max_tokens, row.caution_cadence = HEALTHY - 1, 2
    row.save()

    told = talk.turns(HEALTHY, 8)

    assert told == ["soft", "soft", "soft", "hard", "none", "hard", "none", "hard"]


def test_a_bare_name_is_judged_by_the_model_that_answered(project: ProjectInfo) -> None:
    talk = Talk(project)
    for _ in range(2):
        talk.call(CRITICAL, model="fast", provider="openai", upstream_model="gpt-4o")

    assert short(talk.advance(model="fast")) == "4"
    assert short(talk.advance(model="nobody-knows", generation=4)) == "none"


def test_a_prompt_that_was_probably_cut_stays_unknown(talk: Talk) -> None:
    critical(talk)
    Call.objects.filter(generation=3).update(level="unknown", level_reason="suspected_cut")

    assert short(talk.advance()) == "none"


# Fault 11: an overflow is a dead end.
def test_an_overflow_clears_at_once(talk: Talk) -> None:
    talk.call(None, **OVERFLOW)

    told = talk.advance(user_prompt="Try again.")

    assert (told.action, told.remaining, told.carry) == ("clear", 0, ("Try again.",))


def test_an_overflow_that_a_clear_cannot_help_is_not_cleared_again(talk: Talk) -> None:
    talk.call(None, **OVERFLOW)
    talk.advance()
    talk.call(None, **OVERFLOW)
    first = talk.advance()
    talk.call(None, **OVERFLOW)
    second = talk.advance()

    assert [first.action, second.action] == ["none", "none"]
    assert "free nothing" in second.reason
    assert Round.objects.count() == 2


def test_an_overflow_is_cleared_where_nobody_knows_what_came_before(project: ProjectInfo) -> None:
    """An agent whose long conversation HelmDash sees only now."""
    talk = Talk(project)
    talk.call(None, **OVERFLOW)

    first = talk.advance(user_prompt="Go on.")
    talk.call(None, **OVERFLOW)
    second = talk.advance(user_prompt="Go on.")

    assert (first.action, first.carry) == ("clear", ("Go on.",))
    assert (second.action, second.round_number) == ("none", 2)


@pytest.mark.parametrize("first", [3, 10, 100])
def test_a_caller_may_number_its_generations_in_its_own_way(talk: Talk, first: int) -> None:
    talk.call(CRITICAL)
    told, answers = [], []
    for number in range(6):
        told.append(short(talk.advance(generation=first + number)))
        answers.append(talk.call(CRITICAL))

    # The call after the clear is of the new round, however large it is.
    assert told[-1] == "clear"
    assert answers[-1].round_number == 2
    assert talk.advance().remaining == 4


def test_a_number_ahead_does_not_silence_what_follows(talk: Talk) -> None:
    talk.call(CRITICAL)
    talk.advance(generation=60)
    talk.call(CRITICAL)

    told = [talk.turn(CRITICAL) for _ in range(3)]

    assert [each.remaining for each in told] == [3, 2, 1]
    assert [each.generation for each in told] == [61, 62, 63]


def test_a_caller_that_counts_by_rounds_is_not_told_to_clear_again(talk: Talk) -> None:
    critical(talk).turns(CRITICAL, 5)
    assert talk.advance().action == "clear"
    talk.call(HEALTHY)

    assert {talk.advance(generation=each).action for each in range(1, 10)} == {"none"}


def test_an_overflow_is_forgotten_when_a_model_with_more_room_takes_over(talk: Talk) -> None:
    talk.call(None, **OVERFLOW)

    assert talk.advance(model="anthropic/claude-sonnet-4").action == "none"
    assert talk.advance(model="openai/gpt-4o", generation=5).action == "clear"


def test_a_conversation_nobody_knows_needs_nothing(project: ProjectInfo) -> None:
    told = care.advance(project=project, conversation="new", user_prompt="Hello", now=NOW)

    assert (told.action, told.round_number, told.generation) == ("none", 1, 1)
    assert not Conversation.objects.exists()


def test_conversations_of_another_project_are_not_touched(talk: Talk) -> None:
    critical(talk)
    stranger = make_ruled_project(slug="other", name="Other")

    told = care.advance(project=stranger, conversation="talk", now=NOW)

    assert told.action == "none"
    assert not Guidance.objects.exists()
    with pytest.raises(care.NoConversation):
        care.clear(actor=SHELL, project=stranger, conversation="talk", now=NOW)


# A reminder written since the last hard guidance satisfies it.
def test_a_reminder_puts_the_next_hard_guidance_a_full_cadence_away(talk: Talk) -> None:
    talk.turn(CAUTION)
    assert talk.turns(CAUTION, 7)[-4:] == ["hard", "none", "none", "none"]
    talk.remind()

    told = talk.turns(CAUTION, 11)

    assert told == [*["none"] * 9, "hard", "none"]
    hard = Guidance.objects.filter(strength="hard").order_by("generation")
    assert [row.followed_at is not None for row in hard] == [True, False]


# Fault 20: what a guidance asks for is never checked.
def test_a_hard_guidance_that_nobody_follows_is_shown_and_comes_again(talk: Talk) -> None:
    talk.turn(CAUTION)
    talk.turns(CAUTION, 6)

    standing = care_of(project_id=talk.project.id, conversation="talk")

    assert (standing.level, standing.followed) == (Level.CAUTION, False)
    assert (standing.grace_left, standing.countdown, standing.next_hard_in) == (0, None, 8)
    talk.remind()
    followed = care_of(project_id=talk.project.id, conversation="talk")
    assert (followed.followed, followed.next_hard_in) == (True, 10)


def test_a_reminder_at_zero_does_not_stop_the_clear_and_is_in_the_package(talk: Talk) -> None:
    critical(talk).turns(CRITICAL, 5)
    talk.remind("Do not touch the migrations.", kind="re_entry")

    told = talk.advance()

    assert told.action == "clear"
    assert "Do not touch the migrations." in (told.package or "")
    assert Guidance.objects.filter(action="record_prompt", followed_at__isnull=True).count() == 0


def test_the_projects_own_words_are_used(talk: Talk) -> None:
    Project.objects.filter(pk=talk.project.id).update(soft_text="Mind {conversation}, please.")
    talk.turn(CAUTION)

    assert talk.advance().text == "Mind talk, please."


def test_a_compaction_by_the_client_starts_care_afresh_without_counting_twice(talk: Talk) -> None:
    critical(talk)
    told = talk.turn(CRITICAL)
    row = Conversation.objects.get()
    # As recording does when it sees that a client compacted its history.
    row.round_number = 2
    row.save()
    Round.objects.create(
        project_id=row.project_id,
        conversation=row,
        number=2,
        first_generation=5,
        latest_generation=5,
        started_at=NOW,
        opened_by="compaction",
    )
    talk.call(CRITICAL)

    again = talk.advance(generation=told.generation)
    following = talk.advance()

    assert (again.action, again.is_repeat) == ("none", True)
    assert short(following) == "4"
