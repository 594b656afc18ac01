"""The exporters that may be tried now, as values: with their headers, which nobody may log."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from helmdash.conf.header_list import parse_headers
from helmdash.operations.exporting import outbox
from helmdash.records.access.secrets import unseal


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One exporter; typed_headers as somebody wrote them."""

    id: int
    url: str
    typed_headers: str = field(repr=False)
    allow_private: bool
    failures: int

    def headers(self) -> tuple[tuple[str, str], ...]:
        """By name. Raises ValueError where they are none: those of the environment nobody checks
        before."""
        return parse_headers(self.typed_headers)


def due_targets(now: datetime) -> tuple[Target, ...]:
    """Those for which calls wait. Headers that cannot be read any more are left out: the receiver
    then says that a key is missing."""
    return tuple(
        Target(
            id=row.pk,
            url=row.url,
            typed_headers=(unseal(row.headers_encrypted) or "") if row.headers_encrypted else "",
            allow_private=row.allow_private,
            failures=row.failures,
        )
        for row in outbox.due_exporters(now)
    )
