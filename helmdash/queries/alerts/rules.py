"""Rules and channels as they are stored: what pages show, and what the jobs go by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

from helmdash.core.alerts.channels import ChannelKind, Target
from helmdash.core.alerts.quiet import QuietHours
from helmdash.core.alerts.rules import RuleKind, RuleSettings
from helmdash.records.access.secrets import unseal
from helmdash.records.models import Alert, AlertChannel, AlertRule


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelInfo:
    """One channel without its secrets. host: where it leads, as far as that may be shown.

    failures: attempts in a row that failed; retry_at: when the next one is, None: nothing failed.
    """

    id: int
    name: str
    kind: ChannelKind
    host: str
    allow_private: bool
    enabled: bool
    failures: int
    retry_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleInfo:
    """One rule. firing: how many of its alerts fire, none while it is off; problem: why the last
    look came to nothing."""

    id: int
    settings: RuleSettings
    zone: str
    channels: tuple[int, ...]
    enabled: bool
    firing: int
    problem: str

    @property
    def name(self) -> str:
        """What people call it."""
        return self.settings.name


def channels(*, project_id: int) -> tuple[ChannelInfo, ...]:
    """The channels of a project, by name. One query."""
    rows = AlertChannel.objects.filter(project_id=project_id, gone_at__isnull=True)
    rows = rows.order_by("name")
    return tuple(channel_info(row) for row in rows)


def rules(*, project_id: int) -> tuple[RuleInfo, ...]:
    """The rules of a project, by name. Two queries."""
    rows = list(AlertRule.objects.filter(project_id=project_id).order_by("name"))
    firing: dict[int, int] = {}
    open_ones = Alert.objects.filter(rule__in=[row.pk for row in rows], resolved_at__isnull=True)
    for pk in open_ones.values_list("rule_id", flat=True):
        firing[pk] = firing.get(pk, 0) + 1
    return tuple(_rule_info(row, firing.get(row.pk, 0)) for row in rows)


def find_rule(*, project_id: int, rule_id: int) -> RuleInfo | None:
    """One rule of a project; None if it does not exist."""
    row = AlertRule.objects.filter(project_id=project_id, pk=rule_id).first()
    return _rule_info(row, 0) if row else None


def channel_info(row: AlertChannel) -> ChannelInfo:
    """A channel's row as pages show it."""
    return ChannelInfo(
        id=row.pk,
        name=row.name,
        kind=ChannelKind(row.kind),
        host=row.host,
        allow_private=row.allow_private,
        enabled=row.enabled,
        failures=row.failures,
        retry_at=row.retry_at,
    )


def target_of(row: AlertChannel) -> Target | None:
    """A channel ready to be sent to; None where its secrets cannot be read any more."""
    address = unseal(row.address_encrypted)
    secret = unseal(row.secret_encrypted) if row.secret_encrypted else ""
    if address is None or secret is None:
        return None
    return Target(
        name=row.name,
        kind=ChannelKind(row.kind),
        address=address,
        secret=secret,
        allow_private=row.allow_private,
    )


def settings_of(row: AlertRule) -> RuleSettings:
    """What a stored rule goes by."""
    quiet = None
    if row.quiet_start is not None and row.quiet_end is not None:
        zone = known_zone(row.zone) or UTC
        quiet = QuietHours(start=row.quiet_start, end=row.quiet_end, zone=zone)
    return RuleSettings(
        name=row.name,
        kind=RuleKind(row.kind),
        level=row.level,
        threshold=row.threshold,
        minutes=row.minutes,
        group_s=row.group_s,
        quiet=quiet,
    )


@lru_cache(maxsize=64)
def known_zone(name: str) -> ZoneInfo | None:
    """The zone of this name; None where this machine knows none."""
    try:
        return ZoneInfo(name) if 0 < len(name) <= 64 else None
    except (KeyError, ValueError, OSError):
        return None


def _rule_info(row: AlertRule, firing: int) -> RuleInfo:
    return RuleInfo(
        id=row.pk,
        settings=settings_of(row),
        zone=row.zone,
        channels=_numbers(row.channels),
        enabled=row.enabled,
        # What was seen last is not looked at any more, and may be over.
        firing=firing if row.enabled else 0,
        problem=row.problem,
    )


def _numbers(value: Sequence[object]) -> tuple[int, ...]:
    return tuple(each for each in value if isinstance(each, int))
