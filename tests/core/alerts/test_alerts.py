"""Alerts without a database: states, quiet hours, messages and what each channel takes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from helmdash.core.alerts.channels import (
    ChannelKind,
    HttpPost,
    Links,
    Mail,
    Target,
    outgoing,
    signed,
    split_url,
)
from helmdash.core.alerts.messages import MOST_ENTRIES, Message, alert_key, messages_of
from helmdash.core.alerts.own_range import is_latency_out, is_rate_out
from helmdash.core.alerts.preview import PastChange, preview
from helmdash.core.alerts.quiet import QuietHours
from helmdash.core.alerts.rules import KINDS, RuleKind, RuleSettings, Severity, problems
from helmdash.core.alerts.states import (
    AlertState,
    Seen,
    advance,
    first_episode,
    is_worth_telling,
)

NOW = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
NIGHT = QuietHours(start=time(22), end=time(7), zone=ZoneInfo("Europe/Berlin"))
WARNING, CRITICAL = Severity.WARNING, Severity.CRITICAL
LINKS = Links(base="https://dash.example", project="default", acknowledge="/alerts/seen/abc/")


def walk(*severities: Severity | None) -> list[AlertState | None]:
    """What an alert comes to after each look at one subject, a minute apart."""
    found: list[AlertState | None] = []
    state = None
    for number, severity in enumerate(severities):
        seen = Seen(subject="talk", severity=severity, title="talk is full", path="/c/talk/")
        after = advance(state, seen, now=NOW + number * MINUTE)
        state = after or state
        found.append(after)
    return found


def test_only_changes_change_an_alert_and_each_episode_has_a_key_of_its_own() -> None:
    walked = walk(None, WARNING, WARNING, CRITICAL, WARNING, None, None, WARNING)

    first = first_episode(NOW + MINUTE)
    assert [state and (state.episode - first, state.revision) for state in walked] == [
        None, (0, 1), None, (0, 2), (0, 3), (0, 4), None, (1, 5),
    ]  # fmt: skip
    _, opened, _, worse, _, over, _, again = walked
    assert opened
    assert worse
    assert over
    assert again
    assert alert_key("rule", opened) == alert_key("rule", over) != alert_key("rule", again)
    assert alert_key("other", opened) != alert_key("rule", opened)
    assert (over.resolved_at, over.is_firing) == (NOW + 5 * MINUTE, False)
    assert (again.opened_at, again.is_firing) == (NOW + 7 * MINUTE, True)


@pytest.mark.parametrize(("told", "further"), [(0, 1), (1, 0), (2, 1)])
def test_an_episode_goes_on_where_its_beginning_is_told_and_its_end_is_not(
    told: int, further: int
) -> None:
    """told: none of both, the beginning, both."""
    _, over = walk(WARNING, None)
    assert over
    known = replace(over, told=told, told_episode=over.episode if told else 0)

    again = advance(known, Seen(subject="talk", severity=CRITICAL), now=NOW + 2 * MINUTE)

    assert again
    assert (again.episode, again.revision, again.severity) == (over.episode + further, 3, CRITICAL)
    assert (again.opened_at, again.is_firing, again.is_pending) == (NOW + 2 * MINUTE, True, True)


@pytest.mark.parametrize(
    ("quiet", "at", "is_quiet"),
    [
        (NIGHT, datetime(2026, 7, 1, 20, 0, tzinfo=UTC), True),  # 22:00 in summer
        (NIGHT, datetime(2026, 12, 1, 20, 0, tzinfo=UTC), False),  # 21:00 in winter
        (NIGHT, datetime(2026, 12, 1, 5, 59, tzinfo=UTC), True),
        (NIGHT, datetime(2026, 12, 1, 6, 0, tzinfo=UTC), False),
        (replace(NIGHT, start=time(12), end=time(13)), NOW, False),  # 13:00 there
        (replace(NIGHT, start=time(13), end=time(13)), NOW, True),
    ],
)
def test_quiet_hours_go_by_the_clock_of_their_zone(
    quiet: QuietHours, at: datetime, is_quiet: bool
) -> None:
    assert quiet.covers(at) is is_quiet


def test_what_nobody_has_to_hear() -> None:
    _, opened, over = walk(None, WARNING, None)
    assert opened
    assert over
    told = replace(over, told_episode=over.episode)
    whole_day = replace(NIGHT, start=time(0), end=time(0))

    assert is_worth_telling(opened, whole_day)  # it still goes on when the quiet ends
    assert not is_worth_telling(over, whole_day)
    assert is_worth_telling(told, whole_day)
    assert is_worth_telling(over, None)
    assert not is_worth_telling(replace(opened, is_acknowledged=True), None)
    assert is_worth_telling(replace(told, is_acknowledged=True), None)


def changes(many: int) -> list[AlertState]:
    return [
        AlertState(
            subject=f"talk-{number}",
            severity=CRITICAL if number == 7 else WARNING,
            title=f"talk-{number} <is> full",
            detail="",
            path=f"/conversations/talk-{number}/",
            opened_at=NOW,
            changed_at=NOW,
        )
        for number in range(many)
    ]


def told(
    states: Sequence[AlertState], *, is_grouped: bool = True, firing: int = 1
) -> list[Message]:
    found = messages_of(
        states, uid="rule", project="default", rule="Full", kind="level", firing=firing,
        is_grouped=is_grouped,
    )  # fmt: skip
    return [message for message, _ in found]


def test_a_burst_is_few_messages_and_the_same_ones_again() -> None:
    burst = changes(10_000)

    messages = told(burst, firing=10_000)

    assert len(messages) == 10_000 // MOST_ENTRIES
    assert len({message.key for message in messages}) == len(messages)
    assert [message.key for message in messages] == [each.key for each in told(burst)]
    keys = {entry.dedup_key for message in messages for entry in message.entries}
    assert len(keys) == 10_000
    assert messages[0].entries[0].subject == "talk-7"  # the worst comes first
    assert len(told(burst[:50], is_grouped=False)) == 50
    assert told([]) == []


def sent(kind: ChannelKind, message: Message, address: str = "https://host.example/x") -> Any:
    target = Target(name="t", kind=kind, address=address, secret="s3", allow_private=False)
    made = outgoing(target, message, LINKS, now=NOW)
    if isinstance(made, Mail):
        return made
    assert isinstance(made, HttpPost)
    return made, json.loads(made.body)


def test_every_channel_says_what_fires_and_what_is_over() -> None:
    (firing,) = told(changes(1))
    over_state = replace(changes(1)[0], resolved_at=NOW + MINUTE, revision=2)
    (over,) = told([over_state], firing=0)
    url = "https://dash.example/conversations/talk-0/?project=default"

    post, body = sent(ChannelKind.WEBHOOK, firing)
    assert (body["status"], body["alerts"][0]["url"]) == ("firing", url)
    assert body["acknowledge_url"] == "https://dash.example/alerts/seen/abc/"
    assert dict(post.headers)["webhook-id"] == body["dedup_key"] == firing.key
    assert b"s3" not in post.body
    _, ended = sent(ChannelKind.WEBHOOK, over)
    assert (ended["status"], ended["dedup_key"] == body["dedup_key"]) == ("resolved", False)
    assert ended["alerts"][0]["dedup_key"] == body["alerts"][0]["dedup_key"]

    post, body = sent(ChannelKind.ALERTMANAGER, over, "https://am.example/prefix/")
    assert (post.origin, post.path) == ("https://am.example", "/prefix/api/v2/alerts")
    assert body[0]["labels"] == sent(ChannelKind.ALERTMANAGER, firing)[1][0]["labels"]
    assert body[0]["endsAt"] == (NOW + MINUTE).isoformat()
    # One without an end would be over there after five minutes, since it is told once.
    _, body = sent(ChannelKind.ALERTMANAGER, firing)
    assert datetime.fromisoformat(body[0]["endsAt"]) == NOW + timedelta(days=2)
    assert ("authorization", "Bearer s3") in post.headers

    post, body = sent(ChannelKind.PAGERDUTY, firing, "https://events.pagerduty.com")
    assert post.path == "/v2/enqueue"
    assert (body["event_action"], body["routing_key"]) == ("trigger", "s3")
    assert body["payload"]["severity"] == "warning"
    _, ended = sent(ChannelKind.PAGERDUTY, over)
    assert (ended["event_action"], ended["dedup_key"]) == ("resolve", body["dedup_key"])
    (one,) = told(changes(1), is_grouped=False)
    assert sent(ChannelKind.PAGERDUTY, one)[1]["dedup_key"] == one.entries[0].dedup_key

    _, body = sent(ChannelKind.SLACK, firing)
    assert "&lt;is&gt;" in body["blocks"][0]["text"]["text"]
    _, body = sent(ChannelKind.DISCORD, told(changes(40), firing=40)[0])
    assert "and 25 more" in body["embeds"][0]["description"]
    assert body["allowed_mentions"] == {"parse": []}

    mail = sent(ChannelKind.EMAIL, over, "a@example.org, b@example.org")
    assert mail.to == ("a@example.org", "b@example.org")
    assert mail.subject == "Resolved: talk-0 <is> full"


def test_the_signature_is_that_of_standard_webhooks() -> None:
    # The specification's own example.
    headers = dict(
        signed(
            b'{"test": 2432232314}',
            key="msg_p5jXN8AQM9LWM0D4loKWxJek",
            secret="whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            now=datetime.fromtimestamp(1614265330, UTC),
        )
    )

    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    assert split_url("http://127.0.0.1:9/") == ("http://127.0.0.1:9", "/")
    assert split_url("http://host") == ("http://host", "/")


def test_what_is_wrong_with_a_rule_names_its_field() -> None:
    for kind, row in KINDS.items():
        good = RuleSettings(
            name="Mine",
            kind=kind,
            level="caution" if row.takes_level else "",
            threshold=row.threshold.default if row.threshold else None,
            minutes=row.minutes.default if row.minutes else None,
        )
        assert problems(good) == {}, kind

    bad = RuleSettings(name=" ", kind=RuleKind.FAILING, threshold=0, minutes=1, group_s=-1)
    assert set(problems(bad)) == {"name", "threshold", "minutes", "group_s"}
    assert set(problems(RuleSettings(name="Mine", kind=RuleKind.LEVEL))) == {"level"}


@pytest.mark.parametrize(
    ("failed", "calls", "before", "is_out"),
    [
        (19, 19, 0, None),  # too few to tell
        (1, 20, 0, False),
        (6, 20, 0, True),
        (6, 20, 60, False),  # three in ten fail always
        (100, 200, 20, True),
    ],
)
def test_a_rate_is_out_when_it_clearly_rises(
    failed: int, calls: int, before: int, is_out: bool | None
) -> None:
    assert is_rate_out(failed, calls, failed_before=before, calls_before=200) is is_out
    assert is_rate_out(failed, calls, failed_before=0, calls_before=199) is None


def test_latency_is_out_when_many_are_as_slow_as_few_were() -> None:
    assert [is_latency_out(slow, 40, calls_before=500) for slow in (2, 10, 15, 40)] == [
        False, False, True, True,
    ]  # fmt: skip


def test_a_preview_counts_the_messages_that_would_have_been_sent() -> None:
    def change(subject: str, second: int, *, is_firing: bool = True) -> PastChange:
        at = NOW + timedelta(seconds=second)
        return PastChange(subject=subject, title=subject, at=at, is_firing=is_firing)

    past = [change("a", 0), change("b", 20), change("a", 25, is_firing=False), change("c", 31)]

    gathered = preview(past, group_s=30, quiet=None)
    assert (gathered.messages, gathered.alerts, gathered.changes) == (2, 3, 4)
    assert [message.changes for message in gathered.sent] == [1, 2]
    assert preview(past, group_s=0, quiet=None).messages == 4
    noon = QuietHours(start=time(12), end=time(13), zone=UTC)
    hushed = preview(past, group_s=30, quiet=noon)
    assert [(message.at.hour, message.changes) for message in hushed.sent] == [(13, 2)]
