"""The weekly report by mail: who gets it, and sending it, once for each week.

People subscribe themselves to a project that they may read, at their account's own address. Each
Monday a job sends the week that ended at midnight of UTC; whether somebody may still read the
project is asked anew. A row is marked when the mail server has taken its mail, so that no restart
and no second server sends it again; in the moment between the two a repeat is possible, and has the
same Message-ID. No text of a prompt or an answer is in it, and no control character.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from smtplib import (
    SMTPDataError,
    SMTPException,
    SMTPResponseException,
    SMTPSenderRefused,
    SMTPServerDisconnected,
)
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from django.core import signing
from django.core.exceptions import ValidationError
from django.core.mail import EmailMultiAlternatives
from django.core.validators import validate_email
from django.db.models import Case, When
from django.db.models.functions import Random
from django.template.loader import render_to_string

from helmdash import conf
from helmdash.core.access.permissions import Actor, Right, may, require
from helmdash.operations.database.transactions import write
from helmdash.queries.access.access import person_of, project_info
from helmdash.queries.weekly import WeeklyReport, weekly_report
from helmdash.records import audit
from helmdash.records.models import WeeklySubscription

logger = logging.getLogger(__name__)

_SALT: Final = "helmdash.weekly.stop"
_PATH: Final = "/weekly/stop/{token}/"
# Europe is at work then, and every zone's Sunday is over but the last.
_HOUR: Final = 6
# A mail server that is away is asked again so often, until the next week's is due.
AGAIN: Final = timedelta(minutes=15)


class Mailed(NamedTuple):
    """How many reports were sent, how many could not be, and whether it is worth trying again soon:
    the mail server may be back by then, while who has no address needs a person."""

    sent: int
    failed: int
    is_again: bool


class CannotMail(Exception):
    """No mail can be sent to this person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """What a link to unsubscribe is about. is_over: there is no such subscription (any more)."""

    project: str
    is_over: bool


@dataclass(frozen=True, slots=True)
class Subscription:
    """Somebody gets the report. problem: why the newest one could not be sent; "" where it was."""

    problem: str


class _ServerAway(Exception):
    """No mail goes out at this moment, whoever it is for."""


def why_not(email: str) -> str:
    """Why no mail can go to an address; "" where it can."""
    if not conf.env().smtp_url:
        return "HELMDASH_SMTP_URL is not set, so no mail can be sent"
    if not conf.env().public_url:
        return "HELMDASH_PUBLIC_URL is not set, so a mail could not lead back here"
    try:
        validate_email(email)
    except ValidationError:
        return "your account has no e-mail address; an administrator of HelmDash sets it"
    return ""


def subscription(*, user_id: int, project_id: int) -> Subscription | None:
    """That of somebody to the report of a project; None without one. One query."""
    rows = WeeklySubscription.objects.filter(user_id=user_id, project_id=project_id)
    row = rows.first()
    return None if row is None else Subscription(problem=row.problem or "")


def subscribe(*, actor: Actor, user_id: int, email: str, project_id: int, now: datetime) -> None:
    """Send somebody the report from the next week on; twice is once.

    user_id, email: the actor's own. Raises Forbidden, and CannotMail.
    """
    require(actor, Right.READ, project_id=project_id)
    why = why_not(email)
    if why:
        raise CannotMail(why)

    def work() -> None:
        _, is_new = WeeklySubscription.objects.get_or_create(
            user_id=user_id, project_id=project_id, defaults={"since": now}
        )
        if is_new:
            _note(str(actor), project_id, "started")

    write(work)


def unsubscribe(*, by: str, user_id: int, project_id: int) -> None:
    """Send it no more."""
    rows = WeeklySubscription.objects.filter(user_id=user_id, project_id=project_id)

    def work() -> None:
        if rows.delete()[0]:
            _note(by, project_id, "stopped")

    write(work)


def find(token: str) -> Stop | None:
    """What a link from a mail is about; None for one that is not ours. It does not expire: nobody
    has to sign in to be left alone."""
    row = _of_token(token)
    if row is None:
        return None
    user_id, project_id = row
    found = WeeklySubscription.objects.filter(user_id=user_id, project_id=project_id)
    subscription = found.select_related("project").first()
    return Stop(
        project=subscription.project.name if subscription else "", is_over=subscription is None
    )


def stop(token: str) -> bool:
    """Unsubscribe by a link from a mail. False: it is not one of ours."""
    row = _of_token(token)
    if row is None:
        return False
    unsubscribe(by="who got the mail", user_id=row[0], project_id=row[1])
    return True


def week_before(now: datetime) -> datetime:
    """The Monday's midnight of UTC at which the newest whole week ended."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight - timedelta(days=midnight.weekday())


def next_due(now: datetime) -> datetime:
    """When the next one goes out."""
    at = week_before(now) + timedelta(hours=_HOUR)
    return at if at > now else at + timedelta(days=7)


def send_due(*, now: datetime, go_on: Callable[[], None]) -> Mailed:
    """Send the newest whole week to whom it was not sent yet. go_on: called before each, and raises
    where somebody else has the job by now.

    It ends where the mail server is away: each further mail would wait for it as long again. Those
    that could not be sent come last, in any order, for a server may break off at one mail alone.
    """
    until = week_before(now)
    rows = WeeklySubscription.objects.filter(since__lt=until).exclude(sent_until__gte=until)
    reports: dict[int, WeeklyReport] = {}
    sent = failed = 0
    is_again = False
    in_turn = rows.order_by(
        Case(When(problem__isnull=False, then=Random()), default=-1.0), "project_id", "user_id"
    )
    for row in in_turn.select_related("project", "user"):
        go_on()
        # As it is now: a process that was asleep since it read the rows would send them once more.
        if not rows.filter(pk=row.pk).exists():
            continue
        if not may(person_of(row.user), Right.READ, project_id=row.project_id):
            continue
        problem = why_not(row.user.email)
        if problem:
            failed += 1
            _mark(row, problem=problem)
            continue
        if row.project_id not in reports:
            reports[row.project_id] = weekly_report(project_id=row.project_id, until=until)
        try:
            problem = _send(row, reports[row.project_id])
        except _ServerAway as away:
            _mark(row, problem=str(away))
            return Mailed(sent, failed + 1, is_again=True)
        if problem:
            failed, is_again = failed + 1, True
            _mark(row, problem=problem)
        else:
            sent += 1
            _mark(row, problem=None, sent_until=until)
    return Mailed(sent, failed, is_again)


def _mark(row: WeeklySubscription, **values: object) -> None:
    write(partial(WeeklySubscription.objects.filter(pk=row.pk).update, **values))


def as_text(report: WeeklyReport, *, slug: str, name: str, stop_path: str = "") -> str:
    """The mail's text."""
    return render_to_string("mail/weekly.txt", _context(report, slug, name, stop_path))


def _send(row: WeeklySubscription, report: WeeklyReport) -> str:
    """Why it could not be sent; "" where it was. Raises _ServerAway."""
    project = project_info(row.project)
    path = _PATH.format(token=signing.dumps([row.user_id, row.project_id], salt=_SALT))
    context = _context(report, project.slug, project.name, path)
    base = conf.env().public_url
    host = urlsplit(base).hostname
    name = "".join(each if each.isprintable() else " " for each in project.name)
    mail = EmailMultiAlternatives(
        subject=f"{name}: the week to {report.last_day}",
        body=render_to_string("mail/weekly.txt", context),
        to=[row.user.email],
        headers={
            "Message-ID": f"<weekly-{row.pk}-{report.until:%Y%m%d}@{host}>",
            # RFC 8058: mail programs unsubscribe by one click.
            "List-Unsubscribe": f"<{base.rstrip('/')}{path}>",
            "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
            # Nobody's absence is to be answered to us.
            "Auto-Submitted": "auto-generated",
        },
    )
    mail.attach_alternative(render_to_string("mail/weekly.html", context), "text/html")
    try:
        mail.send()
    except (OSError, ValueError) as error:
        # smtplib's errors are OSErrors; their words may hold a password.
        logger.warning("a weekly report could not be sent: %s", type(error).__name__)
        problem = f"the mail server: {type(error).__name__}"
        if _is_away(error):
            raise _ServerAway(problem) from None
        return problem
    return ""


def _is_away(error: Exception) -> bool:
    """Whether the server could not be reached, or does not let us in: not a word on one mail."""
    if isinstance(error, SMTPException):
        # Who connects, greets or signs in is answered with a code; so is a mail, but by classes of
        # its own.
        is_of_mail = isinstance(error, SMTPSenderRefused | SMTPDataError)
        is_answer = isinstance(error, SMTPResponseException) and not is_of_mail
        return is_answer or isinstance(error, SMTPServerDisconnected)
    return isinstance(error, OSError)


def _context(report: WeeklyReport, slug: str, name: str, stop_path: str) -> dict[str, object]:
    return {
        "report": report,
        "slug": slug,
        "name": name,
        "base": conf.env().public_url.rstrip("/"),
        "stop_path": stop_path,
    }


def _of_token(token: str) -> tuple[int, int] | None:
    try:
        user_id, project_id = signing.loads(token, salt=_SALT)
    except (signing.BadSignature, ValueError, TypeError):
        return None
    return int(user_id), int(project_id)


def _note(by: str, project_id: int, action: str) -> None:
    audit.note(
        actor=by, project_id=project_id, kind="weekly report", action=action, subject="by mail"
    )
