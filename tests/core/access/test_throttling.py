"""Limits as pure values: how much gets through, how long the rest waits, how much is remembered."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helmdash.core.access.throttling import (
    RequestRates,
    Tries,
    WaitPolicy,
    WrongTries,
    given_back,
    next_try,
    retry_after,
)

NOW = datetime(2026, 11, 22, tzinfo=UTC)
POLICY = WaitPolicy(free=3, longest=timedelta(seconds=60), forgotten_after=timedelta(minutes=15))


@given(st.integers(1, 50), st.lists(st.integers(0, 200), min_size=1, max_size=40))
def test_no_run_of_requests_gets_more_than_a_burst_and_what_refills(
    limit: int, pauses_ms: list[int]
) -> None:
    rates, now, passed = RequestRates(limit), 1000.0, 0
    for pause_ms in pauses_ms:
        now += pause_ms / 1000
        passed += rates.take(7, now) == 0.0

    assert passed <= limit + (now - 1000.0) * limit + 1


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 5000])
def test_a_seconds_worth_may_come_at_once_and_the_wait_that_is_told_is_enough(limit: int) -> None:
    rates = RequestRates(limit)

    assert [rates.take(1, 50.0) for _ in range(limit)] == [0.0] * limit
    wait_s = rates.take(1, 50.0)
    assert 0 < wait_s <= 1.0
    assert rates.take(2, 50.0) == 0.0  # another key is not concerned
    assert rates.take(1, 50.0 + wait_s) == 0.0


def test_without_a_limit_nothing_is_counted() -> None:
    rates, tries = RequestRates(0), WrongTries(0)
    for _ in range(100):
        tries.note("192.0.2.1", 1.0)

    assert {rates.take(1, 1.0) for _ in range(100)} == {0.0}
    assert tries.wait_s("192.0.2.1", 1.0) == 0.0


def test_wrong_tries_end_with_their_minute() -> None:
    tries = WrongTries(3)
    for second in range(3):
        assert tries.wait_s("a", 10.0 + second) == 0.0
        tries.note("a", 10.0 + second)

    assert tries.wait_s("a", 15.0) == pytest.approx(55.0)
    assert tries.wait_s("b", 15.0) == 0.0
    assert tries.wait_s("a", 70.0) == 0.0


def test_a_flood_of_names_takes_no_more_room() -> None:
    rates, tries = RequestRates(2, most=10), WrongTries(2, most=10)
    for n in range(1000):
        rates.take(n, 1.0)
        tries.note(str(n), 1.0)

    assert len(rates._due) <= 10
    assert len(tries._windows) <= 10


def test_waits_double_up_to_the_longest_and_are_forgotten_after_silence() -> None:
    waits, tries, now = [], None, NOW
    for _ in range(10):
        tries = next_try(tries, policy=POLICY, now=now)
        waits.append((tries.blocked_until - now).total_seconds())
        now = tries.blocked_until

    assert waits == [0, 0, 1, 2, 4, 8, 16, 32, 60, 60]
    assert tries is not None
    assert next_try(tries, policy=POLICY, now=now + timedelta(minutes=15)).failures == 1


def test_what_is_given_back_ends_the_wait_and_never_goes_below_zero() -> None:
    before = Tries(failures=4, blocked_until=NOW + timedelta(seconds=9))

    assert given_back(before, 3, now=NOW) == Tries(failures=1, blocked_until=NOW)
    assert given_back(before, 9, now=NOW).failures == 0


@pytest.mark.parametrize(("wait_s", "told"), [(0.0, 1), (0.01, 1), (1.0, 1), (1.5, 2), (59.2, 60)])
def test_retry_after_is_a_whole_second_and_never_too_short(wait_s: float, told: int) -> None:
    assert retry_after(wait_s) == told
