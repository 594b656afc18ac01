"""Rule sets, stored once: rows refer to them by number (core.rules).

The number is a hash, so nobody has to ask the database for it; what it stands for is written with
the first row of this process that refers to it, in the same transaction.
"""

from __future__ import annotations

from django.db import transaction

from helmdash.core.rules import RuleVersions
from helmdash.records.models import RuleSet

_stored: set[int] = set()


def keep(rules: RuleVersions) -> int:
    """The number to write into a row; writes what it stands for unless this process has. Inside
    the transaction that writes the row."""
    if rules.number not in _stored:
        row = RuleSet(number=rules.number, versions=dict(rules.versions))
        RuleSet.objects.bulk_create([row], ignore_conflicts=True)
        transaction.on_commit(lambda: _stored.add(rules.number))
    return rules.number


def forget() -> None:
    """Another database has taken the place of the one that was written to."""
    _stored.clear()
