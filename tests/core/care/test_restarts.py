"""What of a client's history is sent after a fresh start."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helmdash.core.care.restarts import (
    Beginning,
    HistoryEntry,
    PartKind,
    RequestPart,
    Speaker,
    arrange,
    carried_of,
    clipped,
    earlier_of,
    end_of,
    facts_of,
    fingerprint,
    fingerprints,
    is_gap,
    pending_of,
    prompt_of,
    within_room,
)

SYSTEM = HistoryEntry(speaker=Speaker.SYSTEM, text="Be brief.")
USER = HistoryEntry(speaker=Speaker.USER, text="Do it.", is_own=True)
ANSWER = HistoryEntry(speaker=Speaker.ASSISTANT, text="Done.")
SILENCE = HistoryEntry(speaker=Speaker.ASSISTANT, text=" ")
CALL = HistoryEntry(speaker=Speaker.ASSISTANT, text="I look.", calls=(("look", '{"at": 1}'),))
TWO_CALLS = HistoryEntry(speaker=Speaker.ASSISTANT, calls=(("look", "1"), ("look", "2")))
RESULT = HistoryEntry(speaker=Speaker.TOOL, text="Rain.", results=1, outcomes=(("", "Rain."),))
PROGRAM = replace(CALL, wants_results_alone=True)
BOTH = HistoryEntry(speaker=Speaker.TOOL, text="And hurry.", results=1, is_own=True)


@pytest.mark.parametrize(
    ("history", "end"),
    [
        ([], 0),
        ([SYSTEM, USER], 2),
        # the beginning of a reply, put into the model's mouth
        ([USER, ANSWER], 1),
        ([USER, CALL, RESULT], 3),
        # one result is missing: neither it nor the one that is there loses its call
        ([USER, TWO_CALLS, RESULT], 1),
        ([USER, TWO_CALLS, RESULT, RESULT], 4),
        ([USER, CALL], 1),
        # a program waits for the results, and for nothing beside them
        ([USER, PROGRAM, RESULT], 1),
        ([USER, PROGRAM, RESULT, PROGRAM, RESULT], 1),
        ([USER, PROGRAM, RESULT, ANSWER, USER], 5),
    ],
)
def test_our_texts_follow_where_no_call_waits(history: list[HistoryEntry], end: int) -> None:
    assert end_of(history) == end


@pytest.mark.parametrize(
    ("history", "pending"),
    [
        ([SYSTEM, USER], (1,)),
        ([USER, ANSWER], ()),
        ([USER, ANSWER, USER], (2,)),
        # the message that started a tool loop, and one said in the middle of it
        ([USER, ANSWER, USER, CALL, RESULT, USER, CALL, RESULT], (2, 5)),
        ([USER, CALL, RESULT, ANSWER], ()),
        # an empty reply answers nothing
        ([USER, SILENCE, USER], (0, 2)),
        # what stands beside a result is the user's all the same
        ([USER, CALL, BOTH], (0, 2)),
        ([USER, USER], (0, 1)),
    ],
)
def test_pending_is_what_no_final_answer_follows(
    history: list[HistoryEntry], pending: tuple[int, ...]
) -> None:
    assert pending_of(history, len(history)) == pending


@pytest.mark.parametrize(
    ("history", "index"),
    [
        ([SYSTEM, USER], 1),
        ([USER, CALL, RESULT], None),
        ([USER, CALL, BOTH], None),
        # a system turn or the beginning of a reply after it changes nothing
        ([USER, SYSTEM], 0),
        ([USER, ANSWER], 0),
        ([], None),
    ],
)
def test_the_request_ends_in_a_users_own_message_or_not(
    history: list[HistoryEntry], index: int | None
) -> None:
    assert prompt_of(history) == index


def kept(*indexes: int) -> list[RequestPart]:
    return [RequestPart(piece=PartKind.KEPT, index=index) for index in indexes]


def said(text: str) -> RequestPart:
    return RequestPart(piece=PartKind.SAID, text=text)


def own(index: int) -> RequestPart:
    return RequestPart(piece=PartKind.OWN, index=index)


def test_guidance_stands_before_the_users_own_message() -> None:
    steps = arrange([SYSTEM, USER, ANSWER, USER], Beginning(), guide="G")

    assert list(steps) == [*kept(0, 1, 2), said("G"), *kept(3)]


def test_guidance_stands_after_the_results_of_tools() -> None:
    steps = arrange([USER, CALL, RESULT], Beginning(), guide="G")

    assert list(steps) == [*kept(0, 1, 2), said("G")]


def test_a_beginning_is_replaced_by_system_package_and_what_is_carried() -> None:
    history = [SYSTEM, USER, CALL, RESULT, SYSTEM, CALL, RESULT]
    beginning = Beginning(entries=5, carried=(1,), package="P", inserts=((2, "old"), (7, "I")))

    steps = arrange(history, beginning, guide="G")

    assert list(steps) == [
        *kept(0), said("P"), own(1), *kept(4, 5, 6), said("I"), said("G")
    ]  # fmt: skip


def test_a_prompt_that_would_part_a_call_from_its_result_is_left_out() -> None:
    steps = arrange([USER, CALL, RESULT], Beginning(inserts=((2, "I"),)))

    assert list(steps) == kept(0, 1, 2)


def agent(text: str = "", *calls: tuple[str, str]) -> HistoryEntry:
    return HistoryEntry(speaker=Speaker.ASSISTANT, text=text, calls=calls)


def asked(text: str) -> HistoryEntry:
    return HistoryEntry(speaker=Speaker.USER, text=text, is_own=True)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        # an old result is pruned, and the arguments of the call with it
        (
            HistoryEntry(speaker=Speaker.TOOL, text="Rain.", results=1),
            replace(RESULT, text="[gone]"),
        ),
        (CALL, replace(CALL, calls=(("look", "{}"),))),
        # the date in the system prompt
        (SYSTEM, replace(SYSTEM, text="It is one.")),
        (agent("A"), agent("A ")),
    ],
)
def test_what_clients_change_by_themselves_is_no_other_history(
    one: HistoryEntry, other: HistoryEntry
) -> None:
    assert fingerprint([one]) == fingerprint([other])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([asked("a")], [asked("b")]),
        ([asked("a")], [agent("a")]),
        ([agent("ab")], [agent("a"), agent("b")]),
        ([], [asked("")]),
        # another tool, or another number of results
        ([agent("", ("look", ""))], [agent("", ("read", ""))]),
        ([RESULT], [replace(RESULT, results=2)]),
        # what the user says beside a result
        ([BOTH], [replace(BOTH, text="And wait.")]),
    ],
)
def test_other_words_are_another_history(
    one: list[HistoryEntry], other: list[HistoryEntry]
) -> None:
    assert fingerprint(one) != fingerprint(other)


def test_each_beginning_has_its_own_fingerprint() -> None:
    history = [SYSTEM, USER, CALL, RESULT]

    assert list(fingerprints(history)) == [fingerprint(history[:end]) for end in range(1, 5)]


@pytest.mark.parametrize(
    ("sizes", "room", "carried"),
    [
        ((10, 10, 10), 30, (1, 4, 7)),
        ((10, 10, 10), 29, (4, 7)),
        # the newest whatever its size
        ((10, 10, 99), 30, (7,)),
        # nothing is left out between two that are carried
        ((10, 99, 10), 30, (7,)),
    ],
)
def test_the_newest_that_wait_are_carried_as_far_as_there_is_room(
    sizes: tuple[int, ...], room: int, carried: tuple[int, ...]
) -> None:
    assert within_room((1, 4, 7), sizes, room=room) == carried


def test_nothing_that_waits_is_carried_where_nothing_waits() -> None:
    assert within_room((), (), room=10) == ()


def test_the_draft_tells_of_user_messages_that_are_not_carried() -> None:
    history = [asked(f"Do {number}. " + "x" * 500) for number in range(10)]

    told = earlier_of(history, range(9)).split("\n")

    assert told[0] == "Earlier user messages (1 older ones are not listed):"
    assert [line[:7] for line in told[1:]] == [f"- Do {number}." for number in range(1, 9)]
    assert max(map(len, told[1:])) <= 162
    assert earlier_of(history, ()) == ""


def test_of_later_system_turns_the_newest_one_stays() -> None:
    history = [SYSTEM, SYSTEM, USER, SYSTEM, CALL, RESULT, SYSTEM, CALL, RESULT, SYSTEM]

    steps = arrange(history, Beginning(entries=9, package="P"))

    assert list(steps) == [*kept(0, 1), said("P"), *kept(6, 9)]


@pytest.mark.parametrize(
    ("beginning", "expected"),
    [
        # As Claude Code (tried: 2.1.332) says it: Anthropic takes one behind a user's turn alone.
        (Beginning(entries=2, carried=(0,), package="P"), [said("P"), own(0), *kept(1, 2)]),
        (Beginning(entries=2, package="P"), [said("P"), *kept(1, 2)]),
        (Beginning(entries=2, carried=(0,)), [own(0), *kept(1, 2)]),
        (Beginning(entries=2), kept(1, 2)),
    ],
)
def test_a_system_turn_behind_the_users_stays_behind_what_is_said_for_the_user(
    beginning: Beginning, expected: list[RequestPart]
) -> None:
    assert list(arrange([USER, SYSTEM, USER], beginning)) == expected


def test_a_clients_own_texts_are_carried_after_the_users() -> None:
    surroundings = asked("<environment_context>\n<cwd>/repo</cwd>\n</environment_context>")
    reminder = replace(BOTH, text="<system-reminder>\nTodo\n</system-reminder>")
    history = [surroundings, USER, CALL, reminder, CALL, RESULT, surroundings]

    pending = pending_of(history, len(history))

    assert pending == (0, 1, 6)  # what comes with results of tools goes with them
    assert carried_of(history, pending, (5, 5, 5), room=15) == (0, 1, 6)
    assert carried_of(history, pending, (5, 5, 5), room=10) == (0, 1)
    assert carried_of(history, pending, (5, 50, 5), room=10) == (1,)
    assert carried_of(history, (0, 6), (5, 50), room=10) == (6,)  # nobody else said anything
    assert facts_of(history)[0] == "Do it."


def test_the_draft_tells_the_task_and_what_was_done() -> None:
    goal, progress = facts_of([SYSTEM, asked("Hi."), ANSWER, USER, CALL, RESULT, BOTH, TWO_CALLS])

    assert goal == "Hi.\nNow: Do it."
    assert progress.split("\n") == [
        "I look.",
        "Calls of tools so far: 3, the newest first:",
        "- look(2)",
        "- look(1)",
        '- look({"at": 1}) -> Rain.',
    ]


def test_results_are_told_with_the_calls_they_answer() -> None:
    call = replace(TWO_CALLS, call_ids=("a", "b"))
    late = replace(RESULT, outcomes=(("b", "two"),)), replace(RESULT, outcomes=(("a", "one"),))

    assert "- look(2) -> two\n- look(1) -> one" in facts_of([USER, call, *late])[1]


@pytest.mark.parametrize("room", [200, 1_000, 4_000, 40_000])
def test_what_was_done_is_told_within_the_room_the_newest_first(room: int) -> None:
    history = [USER]
    for number in range(1, 101):
        call = HistoryEntry(speaker=Speaker.ASSISTANT, calls=(("read", f"file-{number}.txt"),))
        history += [
            call,
            replace(RESULT, text="x" * 999, outcomes=(("", f"{number}: " + "x" * 999),)),
        ]

    _, progress = facts_of(history, room=room)

    assert len(progress) <= room + 400
    assert "so far: 100" in progress
    assert "read(file-100.txt) -> 100: xx" in progress
    told = [f"read(file-{number}.txt)" in progress for number in range(1, 101)]
    assert told == sorted(told)  # never an older one without the newer
    assert all(told) is (room >= 10_000)


def test_what_is_clipped_says_so() -> None:
    assert clipped("one  two\nthree", 100) == "one two three"
    assert clipped("abcdef", 4) == "abc…"


TURNS = [(USER,), (USER, ANSWER), (CALL, RESULT), (TWO_CALLS, RESULT, RESULT), (SYSTEM,)]
turn = st.lists(st.sampled_from(TURNS), max_size=12).map(
    lambda turns: [entry for one in turns for entry in one]
)


@settings(max_examples=100)
@given(history=turn, more=turn, guide=st.sampled_from([None, "G"]))
def test_a_clear_loses_no_word_of_the_users_and_parts_no_call(
    history: list[HistoryEntry], more: list[HistoryEntry], guide: str | None
) -> None:
    end = end_of(history)
    carried = pending_of(history, end)
    whole = history[:end] + more
    beginning = Beginning(entries=end, carried=carried, package="P")

    steps = arrange(whole, beginning, guide=guide)

    indexes = [step.index for step in steps if step.piece is not PartKind.SAID]
    assert set(carried) <= set(indexes)
    assert set(range(end, len(whole))) <= set(indexes)
    assert len(indexes) == len(set(indexes))
    sent = [
        whole[step.index] if step.piece is not PartKind.SAID else HistoryEntry(speaker=Speaker.USER)
        for step in steps
    ]
    assert not any(
        entry.results and sent[:position] and not _belongs(sent, position)
        for position, entry in enumerate(sent)
    )
    assert is_gap(whole, end)


def _belongs(sent: list[HistoryEntry], position: int) -> bool:
    """The entries between a result and its call are results."""
    while position and sent[position].results:
        position -= 1
    return bool(sent[position].calls)
