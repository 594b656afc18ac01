"""The brake of sign-in: growing waits for each account and each address, for all processes.

A try counts as wrong before the password is looked at, and is given back when it was right: so
tries at once cannot all slip through. Accounts are counted by the name that was typed, whether
there is one or not, so that nobody learns which names exist. A name waits five minutes at most:
who knows a name must not be able to keep its owner out, and the sign-in link of the terminal is
never braked.

Every `now` is the database's, which all hosts have in common. Rows hold keyed hashes. What this
process knows to be waiting it does not ask the database again.
"""

from __future__ import annotations

import hashlib
import hmac
import threading
import unicodedata
from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime, timedelta

from helmdash import conf
from helmdash.core.access.throttling import (
    MOST_ENTRIES,
    Tries,
    WaitPolicy,
    given_back,
    next_try,
    retry_after,
    wait_after,
)
from helmdash.operations.database.transactions import write
from helmdash.records.models import SignInThrottle

# Nobody who forgot a password waits longer for the next guess; 12 an hour are no attack.
_LONGEST_ACCOUNT_WAIT = timedelta(minutes=5)
_LONGEST_ADDRESS_WAIT = timedelta(minutes=15)
# After that much silence tries count no more.
_FORGOTTEN_AFTER = timedelta(minutes=15)
# How long this process believes that somebody waits; another one may have let them in meanwhile.
_BELIEVED_FOR = timedelta(seconds=5)
# Names and addresses are cheap to make up. More rows than an office has, few for a database.
MOST_ROWS = 20_000
_CLEAN_EVERY = 100
# Far more than come between two cleanings.
_MOST_DELETED = 1_000
_PURPOSE = b"helmdash sign-in throttle 1"


class MustWait(Exception):
    """An account or address was wrong too often and has to wait. `wait_s`: whole seconds."""

    def __init__(self, wait_s: int) -> None:
        super().__init__(f"too many tries; wait {wait_s} s")
        self.wait_s = wait_s


@dataclass(frozen=True, slots=True)
class SignInTry:
    """A try that has been counted as wrong until it is known to be right."""

    account: str | None
    """Hashes, as rows have them; None where no account is known, or no address."""
    address: str | None


def begin(*, account: str | None, address: str | None, now: datetime) -> SignInTry:
    """Count a try. Raises MustWait, and then counts nothing.

    account: the name as typed; None for a secret that belongs to none. address: as limits count
    it (core.access.client_address.counted_as); None where there is none.
    """
    attempt = _attempt(account, address)
    _refuse(_known_until(attempt, now), now)
    until = write(lambda: _count(attempt, now))
    _refuse(until, now)
    return attempt


def succeed(attempt: SignInTry, *, now: datetime) -> None:
    """It was right: the account starts anew, and the address gets back what that account cost.

    Only that: somebody with an account of their own cannot wipe out tries at others.
    """
    _forget_known(attempt)
    write(lambda: _start_anew(attempt, now))


def give_back(attempt: SignInTry, *, now: datetime) -> None:
    """It was no try: nobody looked at the password."""
    write(lambda: _take_one_off(attempt, now))


def release(*, account: str, address: str | None, now: datetime) -> None:
    """Somebody has proved in another way to be this account: as after a right password. address
    None: not known."""
    succeed(_attempt(account, address), now=now)


def waiting_s(*, address: str | None, now: datetime) -> int:
    """The seconds that this process knows an address has to wait; 0: none that it knows of, or no
    address (None). Without the database."""
    if address is None:
        return 0
    until = _known_until(SignInTry(None, _hash("address", address)), now)
    return 0 if until is None else retry_after((until - now).total_seconds())


def clean(*, now: datetime) -> int:
    """Delete what counts no more; how many rows those were."""
    old, _ = SignInThrottle.objects.filter(blocked_until__lt=now - _FORGOTTEN_AFTER).delete()
    # Then the ones that are nearest to it. A flood of made-up names ends here.
    beyond = SignInThrottle.objects.order_by("-blocked_until", "-id").values_list("id", flat=True)
    ids = list(beyond[MOST_ROWS : MOST_ROWS + _MOST_DELETED])
    extra, _ = SignInThrottle.objects.filter(id__in=ids).delete()
    return old + extra


def forget() -> None:
    """Know nothing of anybody who waits: for tests, whose databases come and go."""
    with _lock:
        _known.clear()


def _refuse(until: datetime | None, now: datetime) -> None:
    if until is not None:
        raise MustWait(retry_after((until - now).total_seconds()))


def _count(attempt: SignInTry, now: datetime) -> datetime | None:
    """Count it, or say until when it has to wait. In a transaction."""
    rows = _rows(attempt)
    policies = _policies(attempt)
    # Who has tries left waits for nothing, whatever the clock of the host that counted them said.
    braked = [rows[each] for each, policy in policies if _is_braked(rows.get(each), policy)]
    waiting = [each for each in braked if each.blocked_until > now]
    for each in waiting:
        _know(each.subject, each.blocked_until, now)
    if waiting:
        return max(each.blocked_until for each in waiting)
    for subject, policy in policies:
        row = rows.get(subject)
        before = None if row is None else _tries_of(row)
        tries = next_try(before, policy=policy, now=now)
        if row is None:
            SignInThrottle.objects.create(
                subject=subject, failures=tries.failures, blocked_until=tries.blocked_until
            )
            _clean_now_and_then(now)
        else:
            _save(row, tries)
    return None


def _is_braked(row: SignInThrottle | None, policy: WaitPolicy) -> bool:
    return row is not None and wait_after(row.failures, policy) > timedelta(0)


def _start_anew(attempt: SignInTry, now: datetime) -> None:
    rows = _rows(attempt)
    account = rows.get(attempt.account or "")
    cost = account.failures if account is not None else 0
    if account is not None:
        account.delete()
    address = rows.get(attempt.address or "")
    if address is not None:
        _save(address, given_back(_tries_of(address), cost, now=now))


def _take_one_off(attempt: SignInTry, now: datetime) -> None:
    for row in _rows(attempt).values():
        _save(row, given_back(_tries_of(row), 1, now=now))


def _rows(attempt: SignInTry) -> dict[str, SignInThrottle]:
    """The rows of both, locked in one order, so that two processes cannot lock each other out."""
    subjects = [each for each in (attempt.account, attempt.address) if each is not None]
    rows = SignInThrottle.objects.select_for_update().filter(subject__in=subjects)
    return {row.subject: row for row in rows.order_by("subject")}


def _policies(attempt: SignInTry) -> list[tuple[str, WaitPolicy]]:
    settings = conf.env()
    account = WaitPolicy(
        free=settings.sign_in_tries or None,
        longest=_LONGEST_ACCOUNT_WAIT,
        forgotten_after=_FORGOTTEN_AFTER,
    )
    address = WaitPolicy(
        free=settings.wrong_tries_per_minute or None,
        longest=_LONGEST_ADDRESS_WAIT,
        forgotten_after=_FORGOTTEN_AFTER,
    )
    found = [(attempt.account, account), (attempt.address, address)]
    # In the order of _rows, for rows that both are about to make.
    return sorted(
        ((subject, policy) for subject, policy in found if subject is not None),
        key=lambda pair: pair[0],
    )


def _tries_of(row: SignInThrottle) -> Tries:
    return Tries(failures=row.failures, blocked_until=row.blocked_until)


def _save(row: SignInThrottle, tries: Tries) -> None:
    row.failures, row.blocked_until = tries.failures, tries.blocked_until
    row.save(update_fields=["failures", "blocked_until"])


def _clean_now_and_then(now: datetime) -> None:
    global _made
    _made += 1
    if _made % _CLEAN_EVERY == 0:
        clean(now=now)


def _attempt(account: str | None, address: str | None) -> SignInTry:
    return SignInTry(
        None if account is None else _hash("account", unicodedata.normalize("NFKC", account)),
        None if address is None else _hash("address", address),
    )


def _hash(kind: str, text: str) -> str:
    key = hmac.digest(conf.secret_key(conf.env()).encode(), _PURPOSE, hashlib.sha256)
    said = f"{kind} {text}".encode("utf-8", "surrogatepass")
    return hmac.digest(key, said, hashlib.sha256).hex()


# --- what this process knows --------------------------------------------------------------------

_lock = threading.Lock()
# Hash -> (until when it waits, until when to believe that).
_known: OrderedDict[str, tuple[datetime, datetime]] = OrderedDict()
_made = 0


def _know(subject: str, until: datetime, now: datetime) -> None:
    with _lock:
        _known[subject] = (until, now + _BELIEVED_FOR)
        _known.move_to_end(subject)
        if len(_known) > MOST_ENTRIES:
            _known.popitem(last=False)


def _known_until(attempt: SignInTry, now: datetime) -> datetime | None:
    with _lock:
        found = [_known.get(each) for each in (attempt.account, attempt.address) if each]
    waits = [pair[0] for pair in found if pair is not None and now < min(pair)]
    return max(waits, default=None)


def _forget_known(attempt: SignInTry) -> None:
    with _lock:
        for each in (attempt.account, attempt.address):
            if each is not None:
                _known.pop(each, None)
