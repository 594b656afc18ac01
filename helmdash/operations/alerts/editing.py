"""Editing channels and rules: for owners, with every problem named by its field.

A channel's address and secret go in and never come out; only a made signing secret is shown, once.
"""

from __future__ import annotations

import base64
import re
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, time
from typing import Any, Final
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db.models import Max, QuerySet

from helmdash import conf
from helmdash.core.access.permissions import Actor, Right, may, require
from helmdash.core.alerts import rules as core_rules
from helmdash.core.alerts.channels import KINDS, PAGERDUTY_URL, ChannelKind, split_url
from helmdash.core.alerts.messages import Entry, Message
from helmdash.core.alerts.quiet import QuietHours
from helmdash.core.alerts.rules import RuleKind, RuleSettings
from helmdash.core.upstreams.addresses import origin_of, path_problem, url_problem
from helmdash.operations.alerts import leaving
from helmdash.operations.alerts.looking import (
    channels_of,
    end_all,
    store_messages,
    take_leave,
    tell_anew,
)
from helmdash.operations.database.transactions import write
from helmdash.queries.alerts.observing import beginning
from helmdash.queries.alerts.rules import known_zone
from helmdash.records import audit
from helmdash.records.access.secrets import seal, unseal
from helmdash.records.models import AlertChannel, AlertMessage, AlertRule
from helmdash.records.statements.locking import lock_project

# Far more than a team reads; each rule costs a look every few seconds.
MOST_CHANNELS: Final = 50
MOST_RULES: Final = 100
MOST_ADDRESSES: Final = 10
_MOST_SECRET_CHARS: Final = 1024
_SECRET_BYTES: Final = 24  # as Standard Webhooks recommends at least
# Why something is over for a channel while it goes on.
_NOT_TOLD: Final = "this rule does not tell this channel any more"
_REGROUPED: Final = "this rule gathers its changes otherwise by now"
_ROUTING_KEY = re.compile(r"[A-Za-z0-9]{32}")


class AlertProblem(Exception):
    """A channel or rule cannot be stored; `errors` has a sentence for each field to blame."""

    def __init__(self, **errors: str) -> None:
        super().__init__("; ".join(f"{field}: {said}" for field, said in errors.items()))
        self.errors = errors


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelEdit:
    """A channel as somebody wants it. address, secret: empty keeps what is stored."""

    name: str
    kind: ChannelKind
    address: str = ""
    secret: str = ""
    allow_private: bool = False
    enabled: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleEdit:
    """A rule as somebody wants it. quiet_start and quiet_end: both or neither."""

    name: str
    kind: RuleKind
    level: str = ""
    threshold: int | None = None
    minutes: int | None = None
    group_s: int = core_rules.DEFAULT_GROUP_S
    quiet_start: time | None = None
    quiet_end: time | None = None
    zone: str = "UTC"
    channels: tuple[int, ...] = ()
    enabled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedChannel:
    """made_secret: the signing secret that was made, to be shown once; None: none was."""

    id: int
    made_secret: str | None


def save_channel(
    *,
    actor: Actor,
    project_id: int,
    edit: ChannelEdit,
    channel_id: int | None = None,
    now: datetime,
) -> SavedChannel:
    """Store a new channel, or change one. Raises Forbidden and AlertProblem.

    One that is switched off is told that what it was told of is over for it, and is told what fires
    when it is switched on again (helmdash.operations.alerts.leaving).

    Only a superuser lets a channel reach private addresses, and changes one that may: an owner
    could otherwise have messages sent to any machine behind the firewall.
    """
    require(actor, Right.CHANGE_SETTINGS, project_id=project_id)

    def work() -> SavedChannel:
        kept = AlertChannel.objects.filter(project_id=project_id, gone_at__isnull=True)
        row: AlertChannel = _row(kept, project_id, channel_id, most=MOST_CHANNELS)
        if (row.allow_private or edit.allow_private) and not _is_operator(actor):
            raise AlertProblem(allow_private="only a superuser may say that it may be private")
        before = audit.values_of(row) if row.pk else None
        was_on = row.enabled if row.pk else None
        made = _fill(row, edit)
        if was_on and not row.enabled:
            leaving.leave(row, why="this channel was switched off", now=now)
        elif was_on is False and row.enabled:
            leaving.come_back(row, now=now)
        _save(row, actor, before)
        return SavedChannel(id=row.pk, made_secret=made)

    return write(work)


def delete_channel(*, actor: Actor, project_id: int, channel_id: int, now: datetime) -> None:
    """Delete a channel with what waits for it, once it was told that what it was told of is over
    for it: until then it is shown nowhere but in the log. Nothing where it is gone. Raises
    Forbidden."""
    require(actor, Right.CHANGE_SETTINGS, project_id=project_id)
    kept = AlertChannel.objects.filter(project_id=project_id, gone_at__isnull=True)

    def work() -> None:
        row = kept.select_for_update().filter(pk=channel_id).first()
        if row is None:
            return
        before = audit.values_of(row)
        if row.enabled:
            leaving.leave(row, why="this channel was deleted", now=now)
        audit.note_row(actor=actor, row=row, before=before, is_gone=True)
        leaving.go(row, now=now)

    write(work)


def save_rule(
    *, actor: Actor, project_id: int, edit: RuleEdit, rule_id: int | None = None, now: datetime
) -> int:
    """Store a new rule, or change one: its number. It is looked at from then on, at what changes
    from then on. One that is switched off tells its channels that what it told of is over, and so
    does one that is told to tell other channels those that it had. Raises Forbidden and
    AlertProblem."""
    require(actor, Right.CHANGE_SETTINGS, project_id=project_id)
    rule_settings(edit)
    told: list[AlertChannel] | None = None

    def work() -> AlertRule:
        nonlocal told
        every = AlertRule.objects.filter(project_id=project_id)
        row: AlertRule = _row(every, project_id, rule_id, most=MOST_RULES)
        before = audit.values_of(row) if row.pk else None
        # Before somebody takes a channel away with the same edit.
        had = channels_of(row) if row.pk and row.enabled else None
        told = None if edit.enabled else had
        if row.pk and row.kind != edit.kind.value:
            raise AlertProblem(kind="a rule keeps its kind: make another one")
        own = AlertChannel.objects.filter(
            project_id=project_id, pk__in=edit.channels, gone_at__isnull=True
        )
        channels = sorted(own.values_list("pk", flat=True))
        if edit.enabled and not channels:
            raise AlertProblem(channels="choose a channel, or leave the rule switched off")
        left = [each for each in had or () if each.pk not in channels]
        if edit.enabled and left:
            take_leave(row, why=_NOT_TOLD, channels=left, now=now)
        anew = [] if bool(row.group_s) is bool(edit.group_s) else _by_incident(had, but=left)
        if edit.enabled and anew:
            take_leave(row, why=_REGROUPED, channels=anew, now=now)
        kind = core_rules.KINDS[edit.kind]
        row.uid = row.uid or secrets.token_hex(16)
        row.name, row.kind = edit.name.strip(), edit.kind.value
        row.level = edit.level if kind.takes_level else ""
        row.threshold = edit.threshold if kind.threshold else None
        row.minutes = edit.minutes if kind.minutes else None
        row.group_s = edit.group_s
        row.quiet_start, row.quiet_end, row.zone = edit.quiet_start, edit.quiet_end, edit.zone
        row.channels = channels
        # While it was off nobody looked: what happened then is not told.
        if not (row.enabled and edit.enabled):
            row.cursor = beginning(edit.kind, project_id=project_id, now=now)
        row.enabled, row.next_at, row.problem = edit.enabled, now, ""
        _save(row, actor, before)
        if edit.enabled and anew:
            tell_anew(row, channels=anew, now=now)
        return row

    saved = write(work)
    if told is not None:
        end_all(saved, why="the rule was switched off", channels=told, now=now)
    return saved.pk


def add_usual_rules(*, actor: Actor, project_id: int, now: datetime) -> int:
    """A rule of each kind of core_rules.USUAL that the project has none of, with its defaults, that
    tells every channel that is on: how many were added. Raises Forbidden and AlertProblem (no
    channel is on, or there are too many rules)."""
    require(actor, Right.CHANGE_SETTINGS, project_id=project_id)
    on = AlertChannel.objects.filter(project_id=project_id, enabled=True, gone_at__isnull=True)
    channels = tuple(on.order_by("pk").values_list("pk", flat=True))
    had = set(AlertRule.objects.filter(project_id=project_id).values_list("kind", flat=True))
    wanted = [core_rules.usual(kind) for kind in core_rules.USUAL if kind.value not in had]
    for rule in wanted:
        edit = RuleEdit(
            name=rule.name,
            kind=rule.kind,
            level=rule.level,
            threshold=rule.threshold,
            minutes=rule.minutes,
            channels=channels,
            enabled=True,
        )
        save_rule(actor=actor, project_id=project_id, edit=edit, now=now)
    return len(wanted)


def delete_rule(*, actor: Actor, project_id: int, rule_id: int, now: datetime) -> None:
    """Delete a rule with its alerts and messages, after its channels are told that what it told of
    is over. Nothing where it is gone. Raises Forbidden."""
    require(actor, Right.CHANGE_SETTINGS, project_id=project_id)
    rules = AlertRule.objects.filter(project_id=project_id, pk=rule_id)

    def switch_off() -> tuple[AlertRule | None, audit.Values | None]:
        row = rules.select_for_update().filter(enabled=True).first()
        if row is None:
            return None, None
        before = audit.values_of(row)
        row.enabled = False
        row.save()
        return row, before

    row, before = write(switch_off)
    if row is not None:
        messages = AlertMessage.objects.filter(rule=row)
        newest = messages.aggregate(pk=Max("pk"))["pk"] or 0
        end_all(row, why="the rule was deleted", channels=channels_of(row), now=now)
        # They are sent after the rule is gone.
        write(lambda: messages.filter(pk__gt=newest).update(rule=None))
    _delete(AlertRule, actor, project_id, rule_id, before=before)


def send_test(*, actor: Actor, project_id: int, channel_id: int, now: datetime) -> bool:
    """Have a test message sent by the job that sends all others; False: no such channel is on.

    Raises Forbidden.
    """
    require(actor, Right.CHANGE_SETTINGS, project_id=project_id)
    rows = AlertChannel.objects.select_related("project").filter(project_id=project_id)
    channel = rows.filter(pk=channel_id, enabled=True).first()
    if channel is None:
        return False
    key = secrets.token_hex(16)
    entry = Entry(
        dedup_key=key,
        status="resolved",
        severity="warning",
        subject="test",
        title=f"The channel {channel.name} works",
        detail=f"sent by {actor}",
        path="/settings/alerts/",
        starts_at=now.isoformat(),
        ends_at=now.isoformat(),
    )
    message = Message(
        key=key,
        incident=key,
        project=channel.project.slug,
        rule="Test",
        kind="test",
        firing=0,
        total=1,
        part=1,
        parts=1,
        entries=(entry,),
        is_test=True,
    )

    def work() -> None:
        # Whoever tests wants to see it now, whatever the channel's faults before.
        AlertChannel.objects.filter(pk=channel.pk).update(retry_at=None)
        store_messages([message], project_id=project_id, rule=None, channels=[channel], now=now)

    write(work)
    return True


def rule_settings(edit: RuleEdit) -> RuleSettings:
    """What a rule would go by. Raises AlertProblem."""
    errors: dict[str, str] = {}
    zone = known_zone(edit.zone)
    if zone is None:
        errors["zone"] = "write a zone such as Europe/Berlin, or UTC"
    if (edit.quiet_start is None) != (edit.quiet_end is None):
        errors["quiet_end"] = "give both ends of the quiet hours, or neither"
    quiet = None
    if zone is not None and edit.quiet_start is not None and edit.quiet_end is not None:
        quiet = QuietHours(start=edit.quiet_start, end=edit.quiet_end, zone=zone)
        if quiet.start == quiet.end:
            errors["quiet_end"] = "quiet hours all day tell nothing: switch the rule off instead"
    made = RuleSettings(
        name=edit.name,
        kind=edit.kind,
        level=edit.level,
        threshold=edit.threshold,
        minutes=edit.minutes,
        group_s=edit.group_s,
        quiet=quiet,
    )
    errors |= core_rules.problems(made)
    if errors:
        raise AlertProblem(**errors)
    return made


def _by_incident(
    channels: Sequence[AlertChannel] | None, *, but: Sequence[AlertChannel]
) -> list[AlertChannel]:
    """Those where a rule that gathers has one incident, and another one for each of its alerts."""
    return [
        each for each in channels or () if each.kind == ChannelKind.PAGERDUTY and each not in but
    ]


def _is_operator(actor: Actor) -> bool:
    return may(actor, Right.ADMINISTER, project_id=None)


def _row(rows: QuerySet[Any], project_id: int, pk: int | None, *, most: int) -> Any:
    """The row to change, locked, or a new one. Raises AlertProblem."""
    if pk is None:
        lock_project(project_id)
        if rows.count() >= most:
            raise AlertProblem(name=f"a project has {most} at most: delete one first")
        return rows.model(project_id=project_id)
    row = rows.select_for_update().filter(pk=pk).first()
    if row is None:
        raise AlertProblem(name="it is gone: somebody deleted it")
    return row


def _save(row: Any, actor: Actor, before: audit.Values | None) -> None:
    same = type(row).objects.filter(project_id=row.project_id, name=row.name).exclude(pk=row.pk)
    if same.exists():
        raise AlertProblem(name="another one has this name")
    row.save()
    audit.note_row(actor=actor, row=row, before=before)


def _delete(
    model: Any, actor: Actor, project_id: int, pk: int, before: audit.Values | None = None
) -> None:
    require(actor, Right.CHANGE_SETTINGS, project_id=project_id)

    def work() -> None:
        row = model.objects.filter(project_id=project_id, pk=pk).first()
        if row is not None:
            known = before or audit.values_of(row)
            row.delete()
            audit.note_row(actor=actor, row=row, before=known, is_gone=True)

    write(work)


# --- channels


def _fill(row: AlertChannel, edit: ChannelEdit) -> str | None:
    """Take over what was given; the signing secret, where one was made. Raises AlertProblem."""
    errors: dict[str, str] = {}
    problem = core_rules.name_problem(edit.name)
    if problem:
        errors["name"] = problem
    if row.pk and row.kind != edit.kind.value:
        errors["kind"] = "a channel keeps its kind: make another one"
    address, secret = edit.address.strip(), edit.secret.strip()
    if edit.kind is ChannelKind.PAGERDUTY and not row.pk:
        address = address or PAGERDUTY_URL
    if not address and not row.pk:
        errors["address"] = f"give the {KINDS[edit.kind].address}"
    elif address:
        problem = _address_problem(edit.kind, address, allow_private=edit.allow_private)
        if problem:
            errors["address"] = problem
    problem = _secret_problem(edit.kind, secret, is_new=not row.pk)
    if not problem and address and not secret and _would_leak(row, address):
        problem = "the address leads to another host: type it again, or make another channel"
    if problem:
        errors["secret"] = problem
    if row.allow_private and not edit.allow_private and not address:
        errors["address"] = "enter the address again: it may be a private one"
    if errors:
        raise AlertProblem(**errors)
    made = None
    if edit.kind is ChannelKind.WEBHOOK and not secret and not row.pk:
        made = f"whsec_{base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()}"
    row.name, row.kind = edit.name.strip(), edit.kind.value
    row.allow_private, row.enabled = edit.allow_private, edit.enabled
    if address:
        row.address_encrypted, row.host = seal(address), _shown(edit.kind, address)
    if secret or made:
        row.secret_encrypted = seal(secret or made or "")
    # Whoever edits a channel has mended it: what waits is tried at once.
    row.failures, row.retry_at = 0, None
    return made


def _address_problem(kind: ChannelKind, address: str, *, allow_private: bool) -> str | None:
    if kind is ChannelKind.APPRISE:
        names = conf.apprise_urls()
        return None if address in names else _name_problem(names)
    if kind is ChannelKind.EMAIL:
        return _mail_problem([part.strip() for part in address.split(",") if part.strip()])
    if len(address) > 1000:
        return "it is longer than 1,000 characters"
    origin, path = split_url(address)
    return url_problem(origin, allow_private=allow_private) or path_problem(path)


def _name_problem(names: Collection[str]) -> str:
    if not names:
        return "the operator named none: HELMDASH_APPRISE_URLS is not set"
    return f"choose one that the operator named: {', '.join(names)}"


def _mail_problem(addresses: Collection[str]) -> str | None:
    if not 1 <= len(addresses) <= MOST_ADDRESSES:
        return f"give 1 to {MOST_ADDRESSES} addresses, with commas between"
    for each in addresses:
        try:
            validate_email(each)
        except ValidationError:
            return f"{each[:80]!r} is no e-mail address"
    return None


def _secret_problem(kind: ChannelKind, secret: str, *, is_new: bool) -> str | None:
    if len(secret) > _MOST_SECRET_CHARS or not (secret.isascii() and secret.isprintable()):
        return f"it is up to {_MOST_SECRET_CHARS:,} plain ASCII characters"
    if secret and not KINDS[kind].credential:
        return "this kind of channel takes none"
    if kind is ChannelKind.PAGERDUTY and (secret or is_new) and not _ROUTING_KEY.fullmatch(secret):
        return "give the integration's routing key: 32 letters and digits"
    return None


def _would_leak(row: AlertChannel, address: str) -> bool:
    """Whether a stored secret would be sent to a host that whoever typed it did not name.

    A webhook's is none: messages are signed with it, and it stays here.
    """
    if not row.secret_encrypted or row.kind == ChannelKind.WEBHOOK:
        return False
    return origin_of(address) != origin_of(unseal(row.address_encrypted) or "")


def _shown(kind: ChannelKind, address: str) -> str:
    """What viewers may see of an address: hosts, without paths and names of people; a name that the
    operator gave."""
    if kind is ChannelKind.APPRISE:
        return address[:255]
    if kind is ChannelKind.EMAIL:
        hosts = sorted({part.rpartition("@")[2].strip() for part in address.split(",")} - {""})
        return ", ".join(hosts)[:255]
    return urlsplit(address).netloc.rpartition("@")[2][:255]
