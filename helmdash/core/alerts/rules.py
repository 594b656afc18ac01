"""What an alert rule may watch, and the numbers each kind takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from helmdash.core.alerts.quiet import QuietHours


class RuleKind(StrEnum):
    """What a rule watches."""

    LEVEL = "level"
    FULLNESS = "fullness"
    COUNTDOWN = "countdown"
    CUT = "cut"
    REFUSAL = "refusal"
    FAILING = "failing"
    FAILURE_RATE = "failure_rate"
    LATENCY = "latency"
    SILENCE = "silence"
    RECORDER_LAG = "recorder_lag"
    EXPORT_LAG = "export_lag"


class Severity(StrEnum):
    """How urgent an alert is: warning before critical."""

    WARNING = "warning"
    CRITICAL = "critical"


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A number that a kind of rule takes. unit: what it counts, for people."""

    default: int
    least: int
    most: int
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KindRow:
    """What follows from a kind alone. subject: what it has an alert for each of.

    every_s: how often it is looked at, in seconds.
    """

    words: str
    subject: str
    severity: Severity
    every_s: int
    takes_level: bool = False
    threshold: Number | None = None
    minutes: Number | None = None


# Changes of conversations are told within seconds. The others look at minutes of calls: to look
# more often than once in one of these costs queries and says nothing new.
_SOON_S: Final = 5
_MINUTE_S: Final = 60
_MOST_MINUTES: Final = 1440  # beyond a day, the overview is the place to look

KINDS: Final[Mapping[RuleKind, KindRow]] = {
    RuleKind.LEVEL: KindRow(
        words="A conversation reaches a level",
        subject="conversation",
        severity=Severity.WARNING,
        every_s=_SOON_S,
        takes_level=True,
    ),
    RuleKind.FULLNESS: KindRow(
        words="A prompt takes a share of its limit",
        subject="conversation",
        severity=Severity.WARNING,
        every_s=_SOON_S,
        threshold=Number(default=80, least=1, most=100, unit="percent of the limit"),
    ),
    RuleKind.COUNTDOWN: KindRow(
        words="Few generations are left before the critical line",
        subject="conversation",
        severity=Severity.WARNING,
        every_s=_SOON_S,
        threshold=Number(default=3, least=1, most=20, unit="generations"),
    ),
    RuleKind.CUT: KindRow(
        words="A prompt was probably cut without a word",
        subject="conversation",
        severity=Severity.CRITICAL,
        every_s=_SOON_S,
        minutes=Number(default=10, least=1, most=_MOST_MINUTES, unit="minutes"),
    ),
    RuleKind.REFUSAL: KindRow(
        words="A prompt was refused as too long",
        subject="conversation",
        severity=Severity.CRITICAL,
        every_s=_SOON_S,
        minutes=Number(default=10, least=1, most=_MOST_MINUTES, unit="minutes"),
    ),
    RuleKind.FAILING: KindRow(
        words="Calls of a model fail for one cause",
        subject="failure group",
        severity=Severity.WARNING,
        every_s=_MINUTE_S,
        threshold=Number(default=5, least=1, most=100_000, unit="calls"),
        minutes=Number(default=15, least=5, most=_MOST_MINUTES, unit="minutes"),
    ),
    RuleKind.FAILURE_RATE: KindRow(
        words="More calls of a model fail than in its own last week",
        subject="model",
        severity=Severity.WARNING,
        every_s=_MINUTE_S,
        minutes=Number(default=30, least=5, most=_MOST_MINUTES, unit="minutes"),
    ),
    RuleKind.LATENCY: KindRow(
        words="Calls of a model are slower than in its own last week",
        subject="model",
        severity=Severity.WARNING,
        every_s=_MINUTE_S,
        minutes=Number(default=30, least=5, most=_MOST_MINUTES, unit="minutes"),
    ),
    RuleKind.SILENCE: KindRow(
        words="No calls come in",
        subject="project",
        severity=Severity.WARNING,
        every_s=_MINUTE_S,
        minutes=Number(default=60, least=5, most=_MOST_MINUTES, unit="minutes"),
    ),
    RuleKind.RECORDER_LAG: KindRow(
        words="Calls that were taken in wait to be stored",
        subject="installation",
        severity=Severity.CRITICAL,
        every_s=_MINUTE_S,
        threshold=Number(default=1000, least=1, most=10_000_000, unit="calls"),
    ),
    RuleKind.EXPORT_LAG: KindRow(
        words="Calls wait to be exported",
        subject="exporter",
        severity=Severity.WARNING,
        every_s=_MINUTE_S,
        minutes=Number(default=10, least=1, most=_MOST_MINUTES, unit="minutes"),
    ),
}

# How long changes of one rule are gathered, seconds: long enough that a burst is one message, short
# enough that a first one is not late. 0: each on its own.
DEFAULT_GROUP_S: Final = 30
MOST_GROUP_S: Final = 3600
NAME_CHARS: Final = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSettings:
    """What a rule goes by. level: the lower of caution and critical that counts; "" elsewhere.

    threshold, minutes: as KINDS says; None where the kind takes none.
    """

    name: str
    kind: RuleKind
    level: str = ""
    threshold: int | None = None
    minutes: int | None = None
    group_s: int = DEFAULT_GROUP_S
    quiet: QuietHours | None = None


# What a team wants to hear of before it knows its own figures: somebody's work is at stake, and the
# defaults are quiet where all is well. Silence depends on office hours, rates on a week before.
USUAL: Final = (RuleKind.LEVEL, RuleKind.CUT, RuleKind.REFUSAL, RuleKind.FAILING)


def usual(kind: RuleKind) -> RuleSettings:
    """A rule of a kind as it is proposed: called what it watches, with its defaults."""
    row = KINDS[kind]
    return RuleSettings(
        name=row.words,
        kind=kind,
        level="critical" if row.takes_level else "",
        threshold=row.threshold.default if row.threshold else None,
        minutes=row.minutes.default if row.minutes else None,
    )


def name_problem(name: str) -> str | None:
    """Why a rule or a channel may not be called so; None when it may."""
    if not name.strip() or len(name) > NAME_CHARS:
        return f"give it a name of up to {NAME_CHARS} characters"
    # It stands in the subjects of mails.
    if not name.strip().isprintable():
        return "write it on one line, with characters that can be seen"
    return None


def problems(rule: RuleSettings) -> dict[str, str]:
    """What is wrong with a rule, a sentence by field; empty: it can be stored."""
    row = KINDS[rule.kind]
    found: dict[str, str] = {}
    problem = name_problem(rule.name)
    if problem:
        found["name"] = problem
    if row.takes_level and rule.level not in ("caution", "critical"):
        found["level"] = "choose caution or critical"
    if not 0 <= rule.group_s <= MOST_GROUP_S:
        found["group_s"] = f"give 0 to {MOST_GROUP_S} seconds; 0 tells each change on its own"
    for name, number, given in (
        ("threshold", row.threshold, rule.threshold),
        ("minutes", row.minutes, rule.minutes),
    ):
        if number is not None and (given is None or not number.least <= given <= number.most):
            found[name] = f"give {number.least:,} to {number.most:,} {number.unit}"
    return found
