"""Conversations that have gone on for long, which have an index of their own."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from django.db.models import BooleanField, Func

# Most are over within hours. Those that began before a time and had calls after it are looked for
# among the few that are not, and among what had its newest call until so long after it.
LONG: Final = timedelta(days=1)


class IsLongLived(Func):
    """Whether one time lies more than LONG after another, to within a millisecond (SQLite reckons
    in days). In the words of the index, which is used for these alone."""

    arity = 2
    output_field = BooleanField()
    template = "(%(expressions)s) > INTERVAL '1 day'"
    arg_joiner = " - "

    def as_sqlite(self, compiler: Any, connection: Any, **_: Any) -> tuple[str, tuple[Any, ...]]:
        """In SQLite's words."""
        (later, of_later), (earlier, of_earlier) = map(compiler.compile, self.source_expressions)
        return f"julianday({later}) - julianday({earlier}) > 1", (*of_later, *of_earlier)
