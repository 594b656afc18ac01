"""Conversations that are cared for, as the tests of the pages need them."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from helmdash.core.access.permissions import SHELL
from helmdash.operations import care
from helmdash.queries.access.access import ProjectInfo
from tests.factories import make_capture, record

# With gpt-4o caution is above 100,000 and critical above 115,200 tokens.
CAUTION, CRITICAL = 105_000, 118_000


def play(project: ProjectInfo, *prompts: int | None, name: str = "cared") -> None:
    """Calls with these prompts, each after asking what to do, and once more at the end."""
    begun = timezone.now() - timedelta(minutes=len(prompts) + 1)
    for generation, prompt in enumerate([*prompts, None], start=1):
        now = begun + timedelta(minutes=generation)
        care.advance(project=project, conversation=name, generation=generation, now=now)
        if generation <= len(prompts):
            usage = {"prompt_tokens": prompt, "completion_tokens": 9} if prompt else None
            record(
                make_capture(
                    id=f"{name}-{generation}", conversation=name, usage=usage, started_at=now
                ),
                project=project,
            )


def note(project: ProjectInfo, content: str, name: str = "cared", **over: str) -> str:
    """Add a reminder. Its id."""
    given = {"project": project, "conversation": name, "content": content, "now": timezone.now()}
    return care.add_reminder(actor=SHELL, **{**given, **over}).id  # type: ignore[arg-type]
