"""What is masked before a text is stored: the built-in patterns, and those of the project."""

from __future__ import annotations

from time import thread_time

from helmdash.core.text.redaction import Masker
from helmdash.queries.access.access import ProjectInfo

# Of its own CPU: a machine that is busy with other things must not cost a call its texts.
# Without own patterns there is nothing to count: one for all calls.
_PLAIN = Masker(seconds=thread_time)


def masker(project: ProjectInfo) -> Masker:
    """A masker for the texts of one call or plan, which together have its time."""
    if not project.redaction_patterns:
        return _PLAIN
    return Masker(project.redaction_patterns, seconds=thread_time)
