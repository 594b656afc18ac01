"""Quiet hours: when messages wait. In the clock of a zone, so they hold in summer and winter."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, time, tzinfo


@dataclass(frozen=True, slots=True, kw_only=True)
class QuietHours:
    """From `start` to before `end`, every day; over midnight where the end comes first.

    zone: whose clock. Equal ends: the whole day, which is what a rule is switched off for.
    """

    start: time
    end: time
    zone: tzinfo

    def covers(self, moment: datetime) -> bool:
        """Whether messages wait at this moment, which knows its zone."""
        at = moment.astimezone(self.zone).time()
        if self.start < self.end:
            return self.start <= at < self.end
        return at >= self.start or at < self.end
