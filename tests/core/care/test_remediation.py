"""Remediation, generation by generation. Readings and actions are written as strings.

Readings: h healthy, d healthy but above 95 % of the caution line, c caution, x caution but above
95 % of the critical line, X critical, ? unknown, o overflow, n no reading, r a reading of another
round. A capital U before a reading: the generation has a user's text of its own. An R before it: a
reminder was written since the last generation.
Actions: s soft, H hard, 4 to 0 a recorded prompt, e to a the same with a user's text (4 to 0),
! clear, . nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helmdash.core.budgets.levels import Level
from helmdash.core.care.remediation import (
    COUNTDOWN,
    GRACE,
    CareAction,
    CareState,
    Decision,
    Snapshot,
    Strength,
    advance,
    brake,
    new_round,
    next_hard_in,
    note_reminder,
    untold,
)

OPTIMAL, CRITICAL = 100_000, 180_000
READINGS = {
    "h": (Level.HEALTHY, 1_000),
    "d": (Level.HEALTHY, 97_000),
    "c": (Level.CAUTION, 120_000),
    "x": (Level.CAUTION, 175_000),
    "X": (Level.CRITICAL, 190_000),
    "?": (Level.UNKNOWN, None),
    "o": (Level.UNKNOWN, None),
    "r": (Level.CRITICAL, 190_000),
}


def make_snapshot(reading: str, *, generation: int, round_number: int = 1) -> Snapshot | None:
    if reading == "n":
        return None
    level, prompt = READINGS[reading]
    return Snapshot(
        round_number=round_number - 1 if reading == "r" else round_number,
        generation=generation,
        level=level,
        prompt_tokens=prompt,
        optimal_max_tokens=OPTIMAL,
        critical_max_tokens=CRITICAL,
        is_overflow=reading == "o",
    )


@dataclass
class Played:
    actions: str
    states: list[CareState]
    decisions: list[Decision]


def play(readings: str, *, cadence: int = 10, restarts: bool = False) -> Played:
    """Run a conversation; with `restarts` the state goes through JSON between generations."""
    state, played, generation = CareState(), Played("", [], []), 0
    has_user_prompt = False
    for reading in readings.replace(" ", ""):
        if reading == "R":
            state = note_reminder(state)
            continue
        if reading == "U":
            has_user_prompt = True
            continue
        generation += 1
        snapshot = make_snapshot(
            reading, generation=generation - 1, round_number=state.round_number
        )
        state, decision = advance(
            state,
            generation=generation,
            snapshot=snapshot,
            cadence=cadence,
            has_user_prompt=has_user_prompt,
        )
        has_user_prompt = False
        if decision.action is CareAction.CLEAR:
            state = new_round(state.round_number + 1, generation=generation)
        if restarts:
            state = CareState.from_json(json.loads(json.dumps(state.to_json())))
        played.actions += letter(decision)
        played.states.append(state)
        played.decisions.append(decision)
    return played


def letter(decision: Decision) -> str:
    match decision.action, decision.strength:
        case CareAction.CLEAR, _:
            return "!"
        case CareAction.NONE, _:
            return "."
        case CareAction.GUIDE, Strength.SOFT:
            return "s"
        case CareAction.GUIDE, Strength.HARD:
            return "H"
        case CareAction.GUIDE, _:
            return "abcde"[decision.remaining or 0]
    return str(decision.remaining)


SEQUENCES = [
    # healthy: nothing, for ever
    ("hhhhhhhh", 10, "........"),
    # caution: three soft, a hard one at the fourth, then each cadence
    ("c" * 34, 10, "sssH.........H.........H.........H"),
    ("c" * 13, 3, "sssH..H..H..H"),
    ("c" * 7, 1, "sssHHHH"),
    # a cadence that makes no sense counts as 1
    ("c" * 6, 0, "sssHHH"),
    # critical: 4, 3, 2, 1, 0, then the clear; the new round starts afresh
    ("XXXXXX", 10, "43210!"),
    ("XXXXXX nhc", 10, "43210! ..s"),
    ("X" * 12, 10, "43210!43210!"),
    # critical straight from healthy, and from caution at every stage
    ("hX", 10, ".4"),
    ("ccX", 10, "ss4"),
    ("ccccX", 10, "sssH4"),
    # unknown, no reading and another round's reading freeze everything
    ("cc?c?c", 10, "ss.s.H"),
    ("ccccc?????" + "c" * 9, 10, "sssH......" + "........H"),
    ("X?X?X?X?X?X", 10, "4.3.2.1.0.!"),
    ("XnXnX", 10, "4.3.2"),
    ("XrXrXrXrXrX", 10, "4.3.2.1.0.!"),
    ("hrrrrrrrr", 10, "........."),
    ("c?c", 10, "s.s"),
    # flapping just under the caution line does not restart the grace
    ("cdcdcdcdc", 3, "sssH..H.."),
    # two in a row just under it, or one clearly under it, leave; coming back starts afresh
    ("ccddc", 10, "sss.s"),
    ("cchc", 10, "ss.s"),
    # an unknown reading between two low ones does not break the row, nor count
    ("ccd?dc", 10, "sss..s"),
    # flapping just under the critical line does not restart the countdown
    ("XxXxXx", 10, "43210!"),
    ("XxX?xX", 10, "432.10"),
    # two in a row under it lead to caution with its own grace
    ("XXxxccc", 10, "432sssH"),
    # clearly below: caution at once; back up: a full countdown
    ("XXcXX", 10, "43s43"),
    ("XXhXX", 10, "43.43"),
    # out of critical onto the edge of caution: that line is held as well
    ("XXdXX", 10, "43s43"),
    ("XXddX", 10, "43s.4"),
    # a user's text takes the same unit, also at 0, and never stops the clear
    ("UXUXUXUXUXUX", 10, "edcba!"),
    ("XXXXUXX", 10, "4321a!"),
    ("XXXXXUX", 10, "43210!"),
    ("UcUcUcUcUc", 10, "sssH."),
    # a tool loop of 13 calls in critical: it is cleared twice on the way
    ("UX" + "X" * 12, 10, "e3210!43210!4"),
    # a reminder during grace does not replace the first hard one
    ("RcRcRcRc", 10, "sssH"),
    # a reminder after the hard one: the next a full cadence after the reminder
    ("ccccccccR" + "c" * 10, 10, "sssH...." + ".........H"),
    ("ccccR" + "c" * 10, 10, "sssH.........H"),
    ("cccccccRccc", 3, "sssH..H" + "..H"),
    ("cccccRccc", 3, "sssH." + "..H"),
    # a reminder at every point of the countdown changes nothing of it
    ("XRXRXRXRXRX", 10, "43210!"),
    ("XXXXXRX", 10, "43210!"),
    # refused as too long: cleared at once, whatever stood before
    ("ho", 10, ".!"),
    ("cco", 10, "ss!"),
    ("XXo", 10, "43!"),
    ("XXUo", 10, "43!"),
    ("XXonc", 10, "43!.s"),
]


@pytest.mark.parametrize("restarts", [False, True], ids=["running", "restarted each time"])
@pytest.mark.parametrize(("readings", "cadence", "actions"), SEQUENCES)
def test_a_sequence_of_readings_gives_these_actions(
    readings: str, cadence: int, actions: str, restarts: bool
) -> None:
    assert play(readings, cadence=cadence, restarts=restarts).actions == actions.replace(" ", "")


@pytest.mark.parametrize("cut", range(1, 13))
@pytest.mark.parametrize("readings", ["cccccccccccccc", "XxX?XxXXXXXXXX", "cdcXXccddccccc"])
def test_a_restart_at_any_point_goes_on_where_it_stood(readings: str, cut: int) -> None:
    state = play(readings[:cut], cadence=3).states[-1]

    restored = CareState.from_json(json.loads(json.dumps(state.to_json())))

    assert restored == state
    assert len(json.dumps(state.to_json())) < 120


def test_soft_guidances_tell_how_many_are_left() -> None:
    assert [d.grace_left for d in play("cccc").decisions] == [3, 2, 1, None]


def test_prompts_are_recorded_unless_the_user_speaks() -> None:
    recorded, transient = play("XUX").decisions

    assert (recorded.action, recorded.persist) == (CareAction.RECORD_PROMPT, True)
    assert (transient.action, transient.persist) == (CareAction.GUIDE, False)
    assert transient.strength is Strength.CRITICAL


def test_a_clear_has_no_strength_and_nothing_left() -> None:
    clear = play("XXXXXX").decisions[-1]

    assert clear == Decision(
        action=CareAction.CLEAR, remaining=0, reason="The countdown has run out."
    )


def test_an_overflow_of_the_only_call_of_a_round_clears_nothing() -> None:
    snapshot = make_snapshot("o", generation=1)
    assert snapshot is not None
    state = CareState(generation=1)

    after, decision = advance(
        state,
        generation=2,
        snapshot=replace(snapshot, is_first=True),
        cadence=10,
        has_user_prompt=False,
    )

    assert decision.action is CareAction.NONE
    assert "clearing again would free nothing" in decision.reason
    assert after == replace(state, generation=2)


@pytest.mark.parametrize("braked_at", [None, 7])
@pytest.mark.parametrize("snapshot", [None, make_snapshot("r", generation=8)])
def test_a_brake_is_told_also_while_nothing_is_known(
    braked_at: int | None, snapshot: Snapshot | None
) -> None:
    """A reading that says nothing changes nothing: whoever is braked still is."""
    state = CareState(generation=8, level=Level.CRITICAL, countdown=0, braked_at=braked_at)

    after, decision = advance(
        state, generation=9, snapshot=snapshot, cadence=10, has_user_prompt=False
    )

    assert (after.braked_at, decision.is_brake) == (braked_at, braked_at is not None)
    assert decision.action is CareAction.NONE


def test_a_brake_without_room_to_tell_it_holds_and_is_told_later() -> None:
    before = CareState(generation=8, level=Level.CRITICAL, countdown=0)

    braked, told = brake(before, has_user_prompt=True)
    held, left_out = untold(before, braked, told)
    again, told_later = brake(CareState.from_json(held.to_json()), has_user_prompt=True)
    _, silent = brake(again, has_user_prompt=True)

    assert (held.braked_at, left_out.action, left_out.is_brake) == (8, CareAction.NONE, True)
    assert (again.braked_at, told_later.action) == (8, CareAction.GUIDE)
    assert silent.action is CareAction.NONE


def test_a_generation_that_was_decided_is_not_decided_again() -> None:
    state = play("XX").states[-1]

    again, decision = advance(
        state,
        generation=2,
        snapshot=make_snapshot("X", generation=1),
        cadence=10,
        has_user_prompt=False,
    )

    assert again is state
    assert decision == Decision(reason="Generation 2 was decided already.")


def test_the_same_reading_twice_is_not_two_in_a_row() -> None:
    state = play("XX").states[-1]
    low = make_snapshot("x", generation=7)

    for generation in (8, 9, 10):
        state, _ = advance(
            state, generation=generation, snapshot=low, cadence=10, has_user_prompt=False
        )

    assert state.level is Level.CRITICAL
    assert (state.under_critical, state.countdown) == (1, 0)


def test_a_model_with_a_wider_window_lifts_a_held_level_at_once() -> None:
    state = play("XXX").states[-1]
    snapshot = make_snapshot("X", generation=2)
    assert snapshot is not None
    wider = replace(
        snapshot, level=Level.HEALTHY, optimal_max_tokens=300_000, critical_max_tokens=500_000
    )

    state, decision = advance(
        state, generation=4, snapshot=wider, cadence=10, has_user_prompt=False
    )

    assert (state.level, state.countdown) == (None, None)
    assert decision.reason == "Healthy: nothing to do."


def test_a_small_window_has_no_caution_on_the_way_down() -> None:
    # Critical lies below the optimal line, so a prompt under the one is under the other.
    state = play("X").states[-1]
    small = Snapshot(
        round_number=1,
        generation=5,
        level=Level.HEALTHY,
        prompt_tokens=6_000,
        optimal_max_tokens=100_000,
        critical_max_tokens=7_372,
    )

    state, decision = advance(
        state, generation=6, snapshot=small, cadence=10, has_user_prompt=False
    )

    assert state.level is None
    assert decision.action is CareAction.NONE


REASONS = [
    ("h", "Healthy: nothing to do."),
    ("?", "The level is unknown: nothing changes until it is known."),
    ("n", "No reading in this round yet: nothing changes."),
    ("r", "The reading is of round 0: nothing changes."),
    ("ccc", "Third of three soft guidances."),
    ("cccd", ("Held at caution: 97 % of the line, under it once. Hard guidance: the three soft ones"
     " are used up.")),
    ("ccccc", "Next hard guidance in 2 generations."),
    ("ccccRcc", "Followed. Next hard guidance in 1 generation."),
    ("ccccccc", "Hard guidance again: no reminder was written in 3 generations."),
    ("ccccRccc", "Hard guidance again: 3 generations since the last reminder."),
    ("Xx", ("Held at critical: 97 % of the line, under it once. Countdown: 3 generations left"
     " before the clear.")),
    ("XXXX", "Countdown: 1 generation left before the clear."),
    ("XXXXX", "Countdown at 0: the next generation starts with a clear."),
    ("o", "The last call was refused as too long."),
]  # fmt: skip


@pytest.mark.parametrize(("readings", "reason"), REASONS)
def test_a_decision_gives_its_reason(readings: str, reason: str) -> None:
    assert play(readings, cadence=3).decisions[-1].reason == reason


@pytest.mark.parametrize(
    ("readings", "due"),
    [
        ("h", None),
        ("X", None),
        ("c", 3),  # two more soft ones, then the hard one
        ("ccc", 1),
        ("cccc", 10),
        ("ccccccc", 7),
        ("cccccccR", 10),  # starts again at the reminder
    ],
)
def test_the_next_hard_guidance_is_foretold(readings: str, due: int | None) -> None:
    state = play(readings).states[-1]
    if readings.endswith("R"):
        state = note_reminder(state)

    assert next_hard_in(state, cadence=10) == due


@pytest.mark.parametrize(
    ("readings", "is_followed"),
    [
        ("cccc", False),
        ("ccccRc", True),
        ("ccRc", False),  # grace asks for nothing yet
        ("ccccRc" + "c" * 10, False),  # asked again since
        ("XRX", False),  # each prompt asks anew
    ],
)
def test_following_is_counted_from_the_latest_guidance(readings: str, is_followed: bool) -> None:
    assert play(readings).states[-1].is_followed is is_followed


def test_a_reminder_after_a_critical_prompt_follows_it() -> None:
    state = note_reminder(play("XX").states[-1])

    assert state.is_followed
    assert state.countdown == 3


@pytest.mark.parametrize(
    "stored",
    [
        None,
        "",
        "care",
        7,
        [],
        [1, 2],
        {},
        {"l": "unknown", "g": -3, "cd": "5", "f": 1},
        {"l": ["critical"], "gr": None, "sh": 2.5, "g": True},
        {"r": 0, "s": float("nan")},
        {"level": "critical", "countdown": 2},  # another shape
    ],
)
def test_a_stored_state_that_makes_no_sense_is_a_fresh_one(stored: object) -> None:
    assert CareState.from_json(stored) == CareState()


def test_stored_figures_are_kept_within_their_ranges() -> None:
    state = CareState.from_json({"gr": 99, "cd": 99, "uc": 99, "g": 10**30, "l": "critical"})

    assert (state.grace, state.countdown, state.under_caution) == (GRACE, COUNTDOWN, 2)
    assert state.generation == 2**63 - 1


def test_a_fresh_state_is_stored_as_its_version_alone() -> None:
    assert CareState().to_json() == {"v": "care-1"}


READING_RUNS = st.text(alphabet="hdcxX?nroRU", max_size=60)


@settings(max_examples=150, deadline=None)
@given(READING_RUNS, st.integers(1, 12))
def test_law_storing_between_generations_changes_nothing(readings: str, cadence: int) -> None:
    running = play(readings, cadence=cadence)
    restarted = play(readings, cadence=cadence, restarts=True)

    assert running == restarted


@settings(max_examples=150, deadline=None)
@given(READING_RUNS)
def test_law_one_stay_in_critical_gives_at_most_five_prompts_in_counting_order(
    readings: str,
) -> None:
    stay: list[int | None] = []
    played = play(readings)
    for state, decision in zip(played.states, played.decisions, strict=True):
        if decision.strength is Strength.CRITICAL:
            stay.append(decision.remaining)
        if state.level is not Level.CRITICAL or decision.action is CareAction.CLEAR:
            stay = [] if decision.strength is not Strength.CRITICAL else stay[-1:]
        assert stay == [4, 3, 2, 1, 0][: len(stay)]
        assert len(decision.reason) <= 200


@settings(max_examples=100, deadline=None)
@given(READING_RUNS, st.text(alphabet="?nrRU", max_size=5), st.integers(1, 12))
def test_law_six_critical_generations_end_in_a_clear(
    before: str, between: str, cadence: int
) -> None:
    """However they are strung: user turns, reminders and unknown readings do not stop it."""
    played = play(before + "".join(f"X{between}" for _ in range(6)), cadence=cadence)

    tail = played.decisions[len(play(before, cadence=cadence).decisions) :]

    assert CareAction.CLEAR in [decision.action for decision in tail]


@settings(max_examples=100, deadline=None)
@given(READING_RUNS.filter(lambda run: run.strip("RU") != ""), st.sampled_from("hdcxX?o"))
def test_law_a_replayed_generation_changes_nothing(readings: str, reading: str) -> None:
    state = play(readings).states[-1]

    again, decision = advance(
        state,
        generation=state.generation,
        snapshot=make_snapshot(reading, generation=99, round_number=state.round_number),
        cadence=3,
        has_user_prompt=True,
    )

    assert again == state
    assert decision.action is CareAction.NONE


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)
STORED_KEYS = st.sampled_from(["v", "r", "g", "l", "gr", "sh", "cd", "uc", "ux", "s", "f"])


@settings(max_examples=150, deadline=None)
@given(JSON_VALUES | st.dictionaries(STORED_KEYS, JSON_VALUES))
def test_law_any_stored_value_is_read_and_reads_the_same_again(stored: object) -> None:
    state = CareState.from_json(stored)

    assert CareState.from_json(state.to_json()) == state
