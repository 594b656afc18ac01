"""The brake of sign-in: across processes, bounded, and never for ever."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from helmdash.operations.access import sign_in_throttle
from helmdash.operations.access.sign_in_throttle import MustWait, begin, clean, release, succeed
from helmdash.records.models import SignInThrottle

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


def wrong(account: str | None, address: str | None, now: datetime) -> int:
    """Try and be wrong; the seconds one is told to wait, 0 where the password was looked at."""
    try:
        begin(account=account, address=address, now=now)
    except MustWait as error:
        return error.wait_s
    return 0


def wrong_until_refused(now: datetime, name: Callable[[int], tuple[str, str]]) -> int:
    for n in range(1000):
        if wrong(*name(n), now):
            return n
    raise AssertionError("never refused")


@pytest.mark.django_db
def test_an_account_waits_whatever_the_address_and_an_address_whatever_the_account() -> None:
    by_account = wrong_until_refused(NOW, lambda n: ("admin", f"192.0.2.{n}"))
    by_address = wrong_until_refused(NOW, lambda n: (f"user{n}", "198.51.100.1"))

    assert (by_account, by_address) == (5, 20)
    assert wrong("admin", "203.0.113.1", NOW) == 1
    assert wrong("somebody", "198.51.100.1", NOW) == 1
    assert wrong("somebody", "203.0.113.1", NOW) == 0


@pytest.mark.django_db
def test_waits_grow_and_end_whatever_an_attacker_does_meanwhile() -> None:
    now, told = NOW, []
    for _ in range(30):
        wait_s = wrong("admin", None, now)
        # Hammering on makes the wait no longer.
        for _ in range(3 if wait_s else 0):
            assert wrong("admin", None, now) == wait_s
        told.append(wait_s)
        now += timedelta(seconds=wait_s)

    assert [wait_s for wait_s in told if wait_s][:6] == [1, 2, 4, 8, 16, 32]
    assert max(told) == 300


@pytest.mark.django_db
def test_another_process_knows_who_waits() -> None:
    wrong_until_refused(NOW, lambda n: ("admin", "192.0.2.1"))

    sign_in_throttle.forget()  # what another process, or this one after a restart, begins with

    assert wrong("admin", "192.0.2.9", NOW) == 1


@pytest.mark.django_db
def test_a_success_takes_back_what_its_own_account_cost_and_nothing_else() -> None:
    for _ in range(15):
        wrong("victim", "192.0.2.1", NOW)
        SignInThrottle.objects.filter(failures__gte=5).update(blocked_until=NOW)
        sign_in_throttle.forget()
    for _ in range(3):
        wrong("owner", "192.0.2.1", NOW)

    succeed(begin(account="owner", address="192.0.2.1", now=NOW), now=NOW)

    assert sorted(SignInThrottle.objects.values_list("failures", flat=True)) == [15, 15]


@pytest.mark.django_db
def test_who_has_tries_left_does_not_wait_for_the_clock_of_another_host() -> None:
    """One is five minutes ahead, or the clock was set back since."""
    wrong("admin", "192.0.2.1", NOW + timedelta(minutes=5))
    sign_in_throttle.forget()

    assert wrong("admin", "192.0.2.1", NOW) == 0
    assert wrong_until_refused(NOW, lambda n: ("admin", "192.0.2.1")) == 3


@pytest.mark.django_db
def test_a_sign_in_link_ends_the_wait() -> None:
    wrong_until_refused(NOW, lambda n: ("admin", "192.0.2.1"))

    release(account="admin", address="192.0.2.1", now=NOW)

    assert wrong("admin", "192.0.2.1", NOW) == 0


@pytest.mark.django_db
def test_the_table_is_bounded_and_holds_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sign_in_throttle, "MOST_ROWS", 20)
    for n in range(60):
        wrong(f"name{n}", f"192.0.2.{n}", NOW + timedelta(seconds=n))

    clean(now=NOW)
    left = list(SignInThrottle.objects.values_list("subject", flat=True))
    assert len(left) == 20
    assert not any("name" in subject or "192" in subject for subject in left)

    clean(now=NOW + timedelta(minutes=20))
    assert not SignInThrottle.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_tries_at_once_do_not_slip_through() -> None:
    def attempt(_: int) -> bool:
        try:
            return wrong("admin", "192.0.2.1", NOW) == 0
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as threads:
        looked_at = sum(threads.map(attempt, range(24)))

    assert looked_at == 5
