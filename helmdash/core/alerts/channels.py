"""Channels: where messages go, and the shape in which each takes them.

Sources: Standard Webhooks (github.com/standard-webhooks, spec 1.0: the three headers and the
signature), Alertmanager's API v2 (`POST /api/v2/alerts`, whose `endsAt` may lie ahead), PagerDuty's
Events API v2 (`/v2/enqueue`), Slack's incoming webhooks (`text`, `blocks`), Discord's webhooks
(`content`, `embeds`).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, TypeAlias

from helmdash.core.alerts.messages import Entry, Message, headline
from helmdash.core.text.visible import visible_name


class ChannelKind(StrEnum):
    """What a message is sent by."""

    WEBHOOK = "webhook"
    SLACK = "slack"
    DISCORD = "discord"
    EMAIL = "email"
    ALERTMANAGER = "alertmanager"
    PAGERDUTY = "pagerduty"
    APPRISE = "apprise"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelRow:
    """What follows from a kind alone. reads_all: a program, which is sent every part of a group;
    people get the first, which says how many there are. credential: what its secret
    is; "" for none."""

    words: str
    address: str
    credential: str
    reads_all: bool
    forgets: bool = False


KINDS: Final[Mapping[ChannelKind, ChannelRow]] = {
    ChannelKind.WEBHOOK: ChannelRow(
        words="Webhook (JSON, signed)",
        address="URL that takes a POST",
        credential="signing secret",
        reads_all=True,
    ),
    ChannelKind.SLACK: ChannelRow(
        words="Slack", address="incoming webhook's URL", credential="", reads_all=False
    ),
    ChannelKind.DISCORD: ChannelRow(
        words="Discord", address="webhook's URL", credential="", reads_all=False
    ),
    ChannelKind.EMAIL: ChannelRow(
        words="E-mail", address="addresses, with commas between", credential="", reads_all=False
    ),
    ChannelKind.ALERTMANAGER: ChannelRow(
        words="Alertmanager",
        address="URL of Alertmanager, without /api/v2",
        credential="bearer token, if it wants one",
        reads_all=True,
        forgets=True,
    ),
    ChannelKind.PAGERDUTY: ChannelRow(
        words="PagerDuty (Events API v2)",
        address="URL of the Events API",
        credential="routing key",
        reads_all=False,
    ),
    # Its address is a name: the URL is the operator's (core.alerts.apprise_names).
    ChannelKind.APPRISE: ChannelRow(
        words="Apprise", address="name that the operator gave", credential="", reads_all=False
    ),
}

PAGERDUTY_URL: Final = "https://events.pagerduty.com"
# Names in a message for people; the rest is a number and a link. Slack takes 50 blocks of 3,000
# characters, Discord 10 embeds of 4,096 and 6,000 in all.
_MOST_NAMED: Final = 15
_LINE_CHARS: Final = 180
# What fires is told again before that (operations.alerts.repeating), but for quiet hours: nearly a
# day, of 25 hours in autumn. One whose end never comes (this server is gone) stays no longer.
_GOES_ON: Final = timedelta(days=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A channel, ready to be sent to. address and secret are the secrets of a project."""

    name: str
    kind: ChannelKind
    address: str
    secret: str
    allow_private: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """Where messages lead. base: the server's address without a slash at its end; "" when it is not
    known, and messages have no links. acknowledge: a path with a signed token."""

    base: str
    project: str
    acknowledge: str = ""

    def page(self, path: str) -> str | None:
        """The address of a page of the project; None without a base."""
        if not self.base or not path:
            return None
        sign = "&" if "?" in path else "?"
        return f"{self.base}{path}{sign}project={self.project}"

    @property
    def acknowledgement(self) -> str | None:
        """Where a click says that somebody sees to it; None without a base or token."""
        return f"{self.base}{self.acknowledge}" if self.base and self.acknowledge else None


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpPost:
    """A POST to another host: origin and path of the URL, headers (secrets among them), body."""

    origin: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """An e-mail in plain text. key: tells a repeat."""

    key: str
    to: tuple[str, ...]
    subject: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """What Apprise is given. name: of the operator's URL; tone: one of its four words for how bad
    it is (info, success, warning, failure)."""

    name: str
    title: str
    text: str
    tone: str


Outgoing: TypeAlias = HttpPost | Mail | Notice


def outgoing(target: Target, message: Message, links: Links, *, now: datetime) -> Outgoing:
    """A message as a channel takes it. now: of this attempt, which signatures tell."""
    if target.kind is ChannelKind.APPRISE:
        return Notice(
            name=target.address,
            title=_headline(message)[:_LINE_CHARS],
            text=_text(message, links),
            tone=_tone(message),
        )
    if target.kind is ChannelKind.EMAIL:
        to = tuple(part.strip() for part in target.address.split(",") if part.strip())
        return Mail(
            key=message.key,
            to=to,
            subject=_headline(message)[:_LINE_CHARS],
            text=_text(message, links),
        )
    path, headers, body = _SHAPES[target.kind](target, message, links, now)
    content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    if target.kind is ChannelKind.WEBHOOK:
        headers = signed(content, key=message.key, secret=target.secret, now=now)
    origin, own_path = split_url(target.address)
    return HttpPost(
        origin=origin,
        path=f"{own_path.rstrip('/')}{path}" if path else own_path,
        headers=(("content-type", "application/json"), *headers),
        body=content,
    )


def split_url(url: str) -> tuple[str, str]:
    """Origin and path of a URL: the path begins with a slash.

    >>> split_url("https://example.org/a?b=1")
    ('https://example.org', '/a?b=1')
    """
    scheme, _, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host}", f"{slash}{path}" or "/"


def signed(content: bytes, *, key: str, secret: str, now: datetime) -> tuple[tuple[str, str], ...]:
    """The headers of Standard Webhooks: id (the dedup key), time, HMAC-SHA256 of both and the body.

    secret: as `whsec_` and base64; another text is taken as its bytes.
    """
    at = str(int(now.timestamp()))
    mac = hmac.new(secret_bytes(secret), f"{key}.{at}.".encode() + content, hashlib.sha256)
    signature = base64.b64encode(mac.digest()).decode()
    return (
        ("webhook-id", key),
        ("webhook-timestamp", at),
        ("webhook-signature", f"v1,{signature}"),
    )


def secret_bytes(secret: str) -> bytes:
    """The key that a secret of a webhook stands for."""
    if secret.startswith("whsec_"):
        try:
            return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
        except ValueError:
            pass
    return secret.encode()


_Shaped = tuple[str, tuple[tuple[str, str], ...], object]


def _webhook(target: Target, message: Message, links: Links, now: datetime) -> _Shaped:
    body = {
        "version": 1,
        "dedup_key": message.key,
        "status": message.status,
        "test": message.is_test,
        "project": message.project,
        "rule": message.rule,
        "kind": message.kind,
        "title": headline(message),
        "firing": message.firing,
        "total": message.total,
        "part": message.part,
        "parts": message.parts,
        "acknowledge_url": links.acknowledgement,
        "alerts": [
            {
                "dedup_key": entry.dedup_key,
                "status": entry.status,
                "severity": entry.severity,
                "subject": entry.subject,
                "title": entry.title,
                "detail": entry.detail,
                "url": links.page(entry.path),
                "starts_at": entry.starts_at,
                "ends_at": entry.ends_at,
            }
            for entry in message.entries
        ],
    }
    return "", (), body


def _slack(target: Target, message: Message, links: Links, now: datetime) -> _Shaped:
    lines = [f"*{_slack_safe(_headline(message))}*"]
    lines += [_slack_safe(line) for line in _named(message, links)]
    if links.acknowledgement:
        lines.append(f"<{links.acknowledgement}|Acknowledge>")
    block = {"type": "section", "text": {"type": "mrkdwn", "text": "\n".join(lines)[:3000]}}
    return "", (), {"text": _slack_safe(_headline(message)), "blocks": [block]}


def _slack_safe(text: str) -> str:
    """Slack's three special characters, as its documentation says: no name makes a link."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _discord(target: Target, message: Message, links: Links, now: datetime) -> _Shaped:
    lines = [_discord_safe(line) for line in _named(message, links)]
    if links.acknowledgement:
        lines.append(f"Acknowledge: {links.acknowledgement}")
    embed = {"description": "\n".join(lines)[:4000], "color": _color(message)}
    body = {
        "content": _discord_safe(_headline(message))[:2000],
        "embeds": [embed],
        # A name in a message calls nobody.
        "allowed_mentions": {"parse": []},
    }
    return "", (), body


def _discord_safe(text: str) -> str:
    """No name makes a link that says something else than where it leads: such begin with a bracket,
    which our own addresses have encoded."""
    return text.replace("\\", "\\\\").replace("[", "\\[")


def _color(message: Message) -> int:
    if message.status == "resolved":
        return 0x2E7D32
    return 0xC62828 if message.severity == "critical" else 0xF9A825


def _tone(message: Message) -> str:
    if message.is_test:
        return "info"
    if message.status == "resolved":
        return "success"
    return "failure" if message.severity == "critical" else "warning"


def _alertmanager(target: Target, message: Message, links: Links, now: datetime) -> _Shaped:
    token = (("authorization", f"Bearer {target.secret}"),) if target.secret else ()
    entries = message.entries
    # Without an end it takes an alert to be over after `resolve_timeout`, five minutes by default,
    # unless it is told again by then.
    lasts = (now + _GOES_ON).isoformat()
    return "/api/v2/alerts", token, [_labelled(each, message, links, lasts) for each in entries]


def _labelled(entry: Entry, message: Message, links: Links, lasts: str) -> dict[str, object]:
    """Labels tell alerts apart, so what changes while one goes on is an annotation. lasts: the end
    of one that has none yet."""
    told: dict[str, object] = {
        "labels": {
            "alertname": message.rule,
            "project": message.project,
            "kind": message.kind,
            "subject": entry.subject,
            "dedup_key": entry.dedup_key,
        },
        "annotations": {
            "summary": entry.title,
            "description": entry.detail,
            "severity": entry.severity,
        },
        "startsAt": entry.starts_at,
        "endsAt": entry.ends_at or lasts,
    }
    url = links.page(entry.path)
    return told | ({"generatorURL": url} if url else {})


def _pagerduty(target: Target, message: Message, links: Links, now: datetime) -> _Shaped:
    """A rule that tells each change on its own has an incident for each alert; one that gathers has
    a single one, open while any of its alerts fires."""
    first = message.entries[0]
    is_over = message.firing == 0 if message.is_grouped else first.status == "resolved"
    body: dict[str, object] = {
        "routing_key": target.secret,
        "event_action": "resolve" if is_over else "trigger",
        "dedup_key": message.incident if message.is_grouped else first.dedup_key,
    }
    if not is_over:
        body["payload"] = {
            "summary": _headline(message)[:1024],
            "source": f"HelmDash: {message.project}",
            "severity": "critical" if message.severity == "critical" else "warning",
            "class": message.kind,
            "custom_details": {"alerts": list(_named(message, links))},
        }
        url = links.page(first.path)
        body["links"] = [{"href": url, "text": "Look at it"}] if url else []
    return "/v2/enqueue", (), body


_SHAPES: Final[Mapping[ChannelKind, Callable[[Target, Message, Links, datetime], _Shaped]]] = {
    ChannelKind.WEBHOOK: _webhook,
    ChannelKind.SLACK: _slack,
    ChannelKind.DISCORD: _discord,
    ChannelKind.ALERTMANAGER: _alertmanager,
    ChannelKind.PAGERDUTY: _pagerduty,
}


def _headline(message: Message) -> str:
    """For people: one line, whatever the names in it are made of."""
    return visible_name(headline(message))


def _text(message: Message, links: Links) -> str:
    lines = [_headline(message), "", *_named(message, links)]
    if links.acknowledgement:
        lines += ["", f"To acknowledge it: {links.acknowledgement}"]
    lines += ["", f"Project {message.project}, rule {visible_name(message.rule)}."]
    return "\n".join(lines) + "\n"


def _named(message: Message, links: Links) -> tuple[str, ...]:
    """A line for each of the first alerts, and how many there are besides."""
    lines = []
    for entry in message.entries[:_MOST_NAMED]:
        over = "resolved: " if entry.status == "resolved" else ""
        detail = f" ({entry.detail})" if entry.detail else ""
        url = links.page(entry.path)
        told = visible_name(f"{over}{entry.title}{detail}")[:_LINE_CHARS]
        lines.append(told + (f" {url}" if url else ""))
    more = message.total - len(lines)
    return (*lines, f"and {more:,} more") if more else tuple(lines)
