"""Answers kept for requests that may come again: `Idempotency-Key`, once and only once.

Whoever makes the row carries the request out; of two at once, in any process, one can. The row
then takes the answer, sealed. Its maker holds it by a lease, renewed for as long as the request
takes. A process that crashes leaves a row without an answer: repeats are refused until the lease
is over, and then carried out again, because nobody can know how far the first one came. Every `now`
here is the database's, for a lease that one host gives itself is looked at by the others.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from django.db import connection
from django.db.models import QuerySet

from helmdash.core.access.throttling import retry_after
from helmdash.operations.database.steps import StepSize, at_once
from helmdash.operations.database.transactions import write, write_and_pause
from helmdash.records.access.secrets import seal, unseal
from helmdash.records.models import KeptAnswer

KEPT_FOR = timedelta(hours=24)
# As long as a writer waits for SQLite's lock; so long nobody learns what became of a crash.
LEASE = timedelta(seconds=60)
# Of a body, before it is compressed. Larger ones are carried out once, and not given again.
MOST_BYTES = 4 * 1024 * 1024
# A client that is told to wait for its own first request had better not ask more often.
_LONGEST_WAIT = timedelta(seconds=5)
# Rows of a day at a request a second are 86,400: each new one takes some old ones with it.
_FORGET_EVERY = 50
_MOST_FORGOTTEN = 500


class InProgress(Exception):
    """The first request is still being carried out. `wait_s`: when to ask again."""

    def __init__(self, wait_s: int) -> None:
        super().__init__(wait_s)
        self.wait_s = wait_s


class AnotherBody(Exception):
    """The same key came with another body."""


class AnswerNotKept(Exception):
    """The first request was carried out; its answer cannot be given again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstAnswer:
    """What the first request was told."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to carry a request out, for as long as its lease."""

    row_id: int
    token: str


def claim(*, key_id: int, path: str, value: str, body: bytes, now: datetime) -> Claim | FirstAnswer:
    """The right to carry the request out, or what it was told the first time.

    A claim is held until `keep` or `release`. Raises InProgress, AnotherBody, AnswerNotKept.
    """
    request_sha = hashlib.sha256(f"{path}\n{value}".encode()).hexdigest()
    body_sha = hashlib.sha256(body).hexdigest()

    def take() -> Claim | KeptAnswer:
        found = (
            KeptAnswer.objects.select_for_update()
            .filter(api_key_id=key_id, request_sha=request_sha)
            .first()
        )
        if found is not None and found.expires_at > now:
            return found
        row = found or KeptAnswer(api_key_id=key_id, request_sha=request_sha)
        row.body_sha, row.claim, row.expires_at = body_sha, secrets.token_hex(16), now + LEASE
        row.status, row.sealed = None, ""
        row.save()
        return Claim(row.pk, row.claim)

    taken = write(take)
    if isinstance(taken, Claim):
        if taken.row_id % _FORGET_EVERY == 0:
            forget_kept(now=now, most=_MOST_FORGOTTEN)
        return taken
    if taken.body_sha != body_sha:
        raise AnotherBody
    if taken.status is None:
        # As long as it has been at work already (since its lease was renewed).
        worked = now - (taken.expires_at - LEASE)
        raise InProgress(retry_after(min(worked, _LONGEST_WAIT).total_seconds()))
    return _opened(taken.status, taken.sealed)


def keep(claim: Claim, answer: FirstAnswer, *, now: datetime) -> None:
    """Keep the answer for repeats. Nothing happens where the lease was over and another has it."""
    sealed = _sealed(answer) if len(answer.body) <= MOST_BYTES else ""
    values = {"status": answer.status, "sealed": sealed, "expires_at": now + KEPT_FOR}
    write(lambda: _rows_of(claim).update(**values))


def release(claim: Claim) -> None:
    """Nothing was done: the next request with this key is a first one again."""
    write(lambda: _rows_of(claim).delete())


def renew(claims: Sequence[Claim], *, now: datetime) -> None:
    """Hold the claims for another lease from now on, but for those that have their answer."""
    tokens = [claim.token for claim in claims]
    rows = KeptAnswer.objects.filter(pk__in=[claim.row_id for claim in claims], claim__in=tokens)
    write(lambda: rows.filter(status__isnull=True).update(expires_at=now + LEASE))


def withhold(*, project_id: int) -> None:
    """Give no answer of the project again: any of them may quote what is being erased.

    Nothing is carried out twice for it; repeats are told that their answer is not kept. In short
    transactions.
    """
    rows = KeptAnswer.objects.filter(api_key__project_id=project_id).exclude(sealed="")
    newest = rows.order_by("-id").values_list("id", flat=True).first()
    size = StepSize(_MOST_FORGOTTEN)
    there = rows.filter(id__lte=newest or 0).order_by("id")
    while ids := at_once(there, size.rows, bytes_of="sealed"):
        some = KeptAnswer.objects.filter(id__in=ids)
        write_and_pause(size.timed(partial(some.update, sealed="")))


def forget_kept(*, now: datetime, most: int | None = None) -> int:
    """Delete responses whose time is over, the oldest first, at most so many (None: all, with
    pauses for others); gives how many those were. In short transactions."""
    rows = KeptAnswer.objects.filter(expires_at__lte=now)
    gone, size = 0, StepSize(_MOST_FORGOTTEN)
    while most is None or gone < most:
        few = size.rows if most is None else min(size.rows, most - gone)
        ids = at_once(rows.order_by("expires_at", "id"), few, bytes_of="sealed")
        if not ids:
            break
        # Asked once more: a claim of this moment may have made one its own.
        some = rows.filter(id__in=ids)
        delete = size.timed(partial(some._raw_delete, connection.alias))
        gone += (write(delete) if most else write_and_pause(delete)) or 0
    return gone


def _rows_of(claim: Claim) -> QuerySet[KeptAnswer]:
    return KeptAnswer.objects.filter(pk=claim.row_id, claim=claim.token)


def _sealed(answer: FirstAnswer) -> str:
    text = json.dumps({"headers": dict(answer.headers), "body": answer.body.decode()})
    return seal(base64.b64encode(zlib.compress(text.encode())).decode("ascii"))


def _opened(status: int, sealed: str) -> FirstAnswer:
    """Raises AnswerNotKept: too large, or sealed under another signing key."""
    opened = unseal(sealed) if sealed else None
    if opened is None:
        raise AnswerNotKept
    kept = json.loads(zlib.decompress(base64.b64decode(opened)))
    return FirstAnswer(status=status, headers=kept["headers"], body=kept["body"].encode())
