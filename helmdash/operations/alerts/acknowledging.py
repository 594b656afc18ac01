"""Acknowledging from a message: a signed link, so that who got the message needs no account."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.core import signing

from helmdash.operations.database.transactions import write
from helmdash.records import audit
from helmdash.records.models import Alert, AlertMessage

_SALT: Final = "helmdash.alerts.acknowledge"
# An alert that nobody saw to in a week is looked at on its page.
_VALID: Final = timedelta(days=7)
_PATH: Final = "/alerts/seen/{token}/"
BY_LINK: Final = "who got the message"


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledgement:
    """What a link is about. firing: how many of its alerts fire; acknowledged: how many of these
    somebody sees to."""

    headline: str
    project: str
    firing: int
    acknowledged: int


def path_of(key: str, *, project_id: int) -> str:
    """The path of the link for a message."""
    return _PATH.format(token=signing.dumps([project_id, key], salt=_SALT))


def find(token: str) -> Acknowledgement | None:
    """What a link is about; None for one that is forged, or older than a week."""
    message = _message(token)
    if message is None:
        return None
    alerts = Alert.objects.filter(message_key=message.key, project=message.project)
    firing = list(alerts.filter(resolved_at__isnull=True).values_list("acknowledged_at", flat=True))
    return Acknowledgement(
        headline=message.headline,
        project=message.project.name,
        firing=len(firing),
        acknowledged=sum(at is not None for at in firing),
    )


def acknowledge(token: str, *, by: str = BY_LINK, now: datetime) -> bool:
    """Note that somebody sees to what a message told and still fires. False: the link is not (any
    more) one of ours. To do it again changes nothing."""
    message = _message(token)
    if message is None:
        return False

    def work() -> None:
        rows = Alert.objects.filter(
            message_key=message.key,
            project_id=message.project_id,
            resolved_at__isnull=True,
            acknowledged_at__isnull=True,
        )
        if rows.update(acknowledged_at=now, acknowledged_by=by[:150]):
            audit.note(
                actor=by,
                project_id=message.project_id,
                kind="alert rule",
                action="acknowledged",
                subject=message.headline,
            )

    write(work)
    return True


def _message(token: str) -> AlertMessage | None:
    try:
        project_id, key = signing.loads(token, salt=_SALT, max_age=_VALID)
    except (signing.BadSignature, ValueError, TypeError):
        return None
    rows = AlertMessage.objects.select_related("project")
    return rows.filter(project_id=project_id, key=key).first()
