"""Telling again what goes on, to receivers that keep alerts in memory only.

An Alertmanager that was restarted knows nothing, and takes what it was told of to be over at the
end that it was given. So what fires is told again, as Prometheus tells what its rules find. It is a
message as the others are, in order with them; of each part only the newest is kept.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Exists, F, OuterRef, QuerySet

from helmdash.core.alerts.channels import KINDS
from helmdash.core.alerts.messages import MOST_ENTRIES, again_key
from helmdash.operations.alerts import looking
from helmdash.operations.database.transactions import write
from helmdash.operations.recorder.group_commit import is_unavailable
from helmdash.queries.alerts.rules import settings_of
from helmdash.records.models import Alert, AlertChannel, AlertDelivery, AlertMessage, AlertRule

logger = logging.getLogger(__name__)

# A sixth of an hour without an alert after a restart, for 144 requests a day. Prometheus tells
# again each minute, of alerts that end four minutes ahead; ours do two days ahead (core.alerts).
AGAIN_AFTER: Final = timedelta(minutes=10)
_FORGETFUL: Final = [kind.value for kind, row in KINDS.items() if row.forgets]


def tell_again(*, now: datetime, go_on: Callable[[], None]) -> int:
    """Make the messages that tell forgetful channels what fires; how many. One query where there
    are no such channels. Raises what `go_on` raises, which is asked between rules, and what an
    unavailable database raises.

    None in quiet hours, when a receiver that was restarted would call somebody; none where the
    channel's last one is not there yet, for it would only wait behind that.
    """
    forgetful = AlertChannel.objects.filter(enabled=True, kind__in=_FORGETFUL)
    channels: dict[int, list[AlertChannel]] = {}
    for each in forgetful.order_by("id"):
        channels.setdefault(each.project_id, []).append(each)
    if not channels:
        return 0
    made = 0
    fires = Exists(Alert.objects.filter(rule=OuterRef("pk"), resolved_at__isnull=True))
    rules = AlertRule.objects.filter(fires, enabled=True, project_id__in=channels)
    for row in rules.select_related("project").order_by("id"):
        mine = [each for each in channels[row.project_id] if each.pk in row.channels]
        try:
            made += _tell_rule(row, mine, now) if mine else 0
        except Exception as error:
            if is_unavailable(error):
                raise
            logger.exception("what fires of an alert rule could not be told again")
        go_on()
    return made


def _tell_rule(row: AlertRule, channels: Sequence[AlertChannel], now: datetime) -> int:
    quiet = settings_of(row).quiet
    if quiet is not None and quiet.covers(now):
        return 0
    return sum(_tell(row, channel, now) for channel in channels if _is_time(row, channel, now))


def _is_time(row: AlertRule, channel: AlertChannel, now: datetime) -> bool:
    latest = _messages(row, channel, part=1).values_list("created_at", flat=True).first()
    # What a clock that was set back since has dated ahead waits for nothing.
    if latest is not None and now - AGAIN_AFTER < latest <= now:
        return False
    return not AlertDelivery.objects.filter(channel=channel, state="waiting").exists()


def _tell(row: AlertRule, channel: AlertChannel, now: datetime) -> int:
    after, part = 0, 1
    while True:
        told = write(lambda: _store(row, channel, now, after=after, part=part))  # noqa: B023
        if not told:
            return part - 1
        after, part = told, part + 1


def _store(row: AlertRule, channel: AlertChannel, now: datetime, *, after: int, part: int) -> int:
    """Store one part; the last alert that it tells, 0: there is none.

    Alerts are read while the rule is locked, as it is where they change: what ended is never told
    to go on behind the message of its end.
    """
    if not looking.is_still(row):
        return 0
    alerts = list(
        Alert.objects.filter(
            rule=row,
            resolved_at__isnull=True,
            told_episode=F("episode"),
            # What changed since has just been told, or is about to be.
            changed_at__lte=now - AGAIN_AFTER,
            pk__gt=after,
        ).order_by("pk")[:MOST_ENTRIES]
    )
    if not alerts:
        return 0
    states = [looking.state_of(each) for each in alerts]
    [(message, _)] = looking.messages_for(row, states, firing=len(alerts), is_grouped=True)
    _messages(row, channel, part).delete()
    looking.store_messages(
        [replace(message, key=again_key(row.uid, channel.pk, part))],
        project_id=row.project_id,
        rule=row,
        channels=[channel],
        now=now,
        before="Told again: ",
    )
    return alerts[-1].pk


def _messages(row: AlertRule, channel: AlertChannel, part: int) -> QuerySet[AlertMessage]:
    key = again_key(row.uid, channel.pk, part)
    return AlertMessage.objects.filter(project_id=row.project_id, key=key)
