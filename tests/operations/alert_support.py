"""What the tests of alerts share: channels, rules and calls in one line, and a receiver."""

from __future__ import annotations

import json
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from typing import Any, Final

from helmdash.core.access.permissions import SHELL
from helmdash.core.alerts.channels import ChannelKind, HttpPost, Outgoing, Target
from helmdash.core.alerts.rules import KINDS, RuleKind
from helmdash.operations.alerts import delivering, editing, looking
from helmdash.operations.alerts.delivering import Outcome, Send
from helmdash.operations.alerts.editing import ChannelEdit, RuleEdit
from helmdash.queries.access.access import ProjectInfo
from helmdash.records.models import AlertChannel
from tests.factories import NOW, make_capture, record

HEALTHY, CAUTION, CRITICAL = 20_000, 105_000, 125_000
SENT: Final = Outcome(is_sent=True, status=200)


def channel(project: ProjectInfo, kind: ChannelKind = ChannelKind.WEBHOOK, **over: Any) -> int:
    address = "a@example.org" if kind is ChannelKind.EMAIL else "https://hooks.example.com/x/y"
    given = {"name": kind.value, "kind": kind, "address": address, **over}
    if kind is ChannelKind.PAGERDUTY:
        given.setdefault("secret", "0" * 32)
    return editing.save_channel(
        actor=SHELL, project_id=project.id, edit=ChannelEdit(**given), now=NOW
    ).id


def rule(project: ProjectInfo, kind: RuleKind, *channels: int, **over: Any) -> int:
    row = KINDS[kind]
    given = {
        "name": kind.value,
        "kind": kind,
        "level": "caution" if row.takes_level else "",
        "threshold": row.threshold.default if row.threshold else None,
        "minutes": row.minutes.default if row.minutes else None,
        "channels": channels,
        "enabled": True,
        **over,
    }
    made = editing.save_rule(actor=SHELL, project_id=project.id, edit=RuleEdit(**given), now=NOW)
    look(NOW)  # the first look only notes where it begins
    return made


def call(project: ProjectInfo, tokens: int, name: str = "talk", at: datetime = NOW) -> None:
    usage = {"prompt_tokens": tokens, "completion_tokens": 9}
    record(make_capture(conversation=name, usage=usage, started_at=at), project=project)


def look(now: datetime) -> int:
    return looking.look_at_due(now=now, go_on=lambda: None)


class Receiver:
    """What a channel leads to; `answers` are those of the next attempts, then all is well."""

    def __init__(self) -> None:
        self.got: list[tuple[str, dict[str, Any]]] = []
        self.answers: list[Outcome | BaseException] = []

    def open(self) -> AbstractContextManager[Send]:
        return nullcontext(self.send)

    def send(self, target: Target, shaped: Outgoing) -> Future[Outcome]:
        assert isinstance(shaped, HttpPost)
        self.got.append((target.name, json.loads(shaped.body)))
        answer = self.answers.pop(0) if self.answers else SENT
        future: Future[Outcome] = Future()
        if isinstance(answer, BaseException):
            future.set_exception(answer)
        else:
            future.set_result(answer)
        return future

    def deliver(self, *, now: datetime = NOW, is_later: bool = True, **over: Any) -> int:
        if is_later:  # the wait after a fault is over
            AlertChannel.objects.update(retry_at=None)
        return delivering.deliver_due(now=now, sending=self.open, go_on=lambda: None, **over)

    @property
    def told(self) -> list[tuple[str, str]]:
        return [(body["status"], body["title"]) for _, body in self.got]
