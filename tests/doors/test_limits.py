"""KeyLimits of keys and addresses, apart from any face."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from helmdash.doors.callers.keys import look_up
from helmdash.doors.faults import (
    ExpiredKey,
    Fault,
    TooManyRequests,
    TooManyWrongKeys,
    UnknownKey,
)
from helmdash.doors.limits import KeyLimits
from helmdash.metrics import limited_requests
from helmdash.queries.access.access import Caller, ProjectInfo
from helmdash.records.models import ApiKey
from tests.factories import make_key, make_project

ADDRESS, OTHER = "192.0.2.1", "192.0.2.2"


def caller(**over: object) -> Caller:
    project = ProjectInfo(
        id=1,
        slug="default",
        name="Default",
        is_default=True,
        is_demo=False,
        payload="off",
        retention_days=None,
    )
    values = {"key_id": 1, "name": "agent", "scopes": frozenset({"record"}), "project": project}
    return Caller(**{**values, "latest_used_at": None, **over})  # type: ignore[arg-type]


def wrong(limits: KeyLimits, *keys: str, address: str = ADDRESS) -> Fault | None:
    """What a request with keys that nobody knows is told."""
    try:
        limits.worth_looking_up(keys, address)
    except Fault as fault:
        return fault
    return limits.turn_away(keys, address)


def test_a_good_key_goes_on_working_where_others_were_wrong() -> None:
    limits = KeyLimits(requests_per_second=0, wrong_keys_per_minute=3)
    limits.let_in("good", caller())

    told = [type(wrong(limits, f"guess-{n}")) for n in range(5)]

    assert told == [UnknownKey] * 3 + [TooManyWrongKeys] * 2
    assert limits.worth_looking_up(("guess", "good"), ADDRESS) == ["good"]
    # One that was not seen yet waits with the guesses; from another address it need not.
    with pytest.raises(TooManyWrongKeys) as caught:
        limits.worth_looking_up(("new",), ADDRESS)
    assert 1 <= (caught.value.retry_after_s or 0) <= 60
    assert limits.worth_looking_up(("new",), OTHER) == ("new",)


def test_a_good_key_that_is_revoked_is_a_wrong_one_from_then_on() -> None:
    limits = KeyLimits(requests_per_second=0, wrong_keys_per_minute=1)
    limits.let_in("good", caller())
    limits.turn_away(("good",), ADDRESS)

    assert isinstance(wrong(limits, "good"), TooManyWrongKeys)


def test_each_key_of_a_request_is_a_try_and_tries_at_once_are_counted_too() -> None:
    limits = KeyLimits(requests_per_second=0, wrong_keys_per_minute=4)
    assert isinstance(wrong(limits, "a", "b", "c"), UnknownKey)
    # Two that had been let through before either was known to be wrong.
    assert isinstance(limits.turn_away(("d",), ADDRESS), UnknownKey)
    assert isinstance(limits.turn_away(("e",), ADDRESS), TooManyWrongKeys)


def test_who_has_no_address_is_not_counted_together_with_all_others_of_that_kind() -> None:
    limits = KeyLimits(requests_per_second=0, wrong_keys_per_minute=1)

    assert {type(wrong(limits, str(n), address="")) for n in range(9)} == {UnknownKey}


def test_requests_beyond_the_rate_wait_and_other_keys_do_not() -> None:
    limits = KeyLimits(requests_per_second=2, wrong_keys_per_minute=0)
    for _ in range(2):
        limits.let_in("one", caller(key_id=1))

    with pytest.raises(TooManyRequests) as caught:
        limits.let_in("one", caller(key_id=1))
    assert caught.value.retry_after_s == 1
    limits.let_in("two", caller(key_id=2))
    limits.take("user 1")  # a person is nobody's key


def test_every_refusal_for_a_limit_is_counted() -> None:
    limits = KeyLimits(requests_per_second=1, wrong_keys_per_minute=1)
    before = _limited("requests"), _limited("wrong_keys")

    limits.take(1)
    with pytest.raises(TooManyRequests):
        limits.take(1)
    for _ in range(3):
        wrong(limits, "guess")

    assert (_limited("requests"), _limited("wrong_keys")) == (before[0] + 1, before[1] + 2)


def _limited(limit: str) -> float:
    (family,) = limited_requests.labels(limit).collect()
    return next(each.value for each in family.samples if each.name.endswith("_total"))


def test_an_expired_key_says_so_and_when() -> None:
    limits = KeyLimits(requests_per_second=0, wrong_keys_per_minute=0)
    now = timezone.now()

    limits.let_in("key", caller(expires_at=now + timedelta(seconds=9)))
    with pytest.raises(ExpiredKey, match=f"agent expired at {now:%Y-%m-%d}T"):
        limits.let_in("key", caller(expires_at=now))


@pytest.mark.django_db
def test_another_key_that_came_along_counts_beside_an_expired_one() -> None:
    make_project()
    old, good = make_key(name="old"), make_key(name="good")
    ApiKey.objects.filter(name="old").update(expires_at=timezone.now())

    assert look_up((old, "no key", good), address="").name == "good"
    with pytest.raises(ExpiredKey):
        look_up((old, "no key"), address="")
    assert ApiKey.objects.get(name="old").latest_used_at is None
