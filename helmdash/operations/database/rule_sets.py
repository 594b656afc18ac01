"""Rule sets, stored once: rows refer to them by number (core.rules).

The number is a hash, so nobody has to ask the database for it; what it stands for is written with
the first row of this process that refers to it, in the same transaction. And now and then again:
where another server took over, or a backup was restored, it may be lost with that row.
"""

from __future__ import annotations

import time
from typing import Final

from django.db import transaction

from helmdash.core.rules import RuleVersions
from helmdash.records.models import RuleSet

_AGAIN_S: Final = 60.0
# When each was written.
_stored: dict[int, float] = {}


def keep(rules: RuleVersions) -> int:
    """The number to write into a row; writes what it stands for unless this process has
    lately. Inside the transaction that writes the row."""
    moment = time.monotonic()
    if moment - _stored.get(rules.number, float("-inf")) >= _AGAIN_S:
        row = RuleSet(number=rules.number, versions=dict(rules.versions))
        RuleSet.objects.bulk_create([row], ignore_conflicts=True)
        transaction.on_commit(lambda: _stored.update({rules.number: moment}))
    return rules.number


def forget() -> None:
    """Another database has taken the place of the one that was written to."""
    _stored.clear()
