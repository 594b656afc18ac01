"""Demo conversations that are cared for: guidance, reminders, a countdown, clears, a silent cut.

They take the steps that an agent would: ask `advance`, make the call, write a reminder now and
then; only the times are moved. What the demo shows is what the rules make of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from helmdash.core.access.permissions import SHELL
from helmdash.core.calls.capture import Capture, SentSizes
from helmdash.operations import care
from helmdash.operations.recording.calls import record_calls
from helmdash.queries.access import ProjectInfo

# English text with a catalog of tools: what OpenAI's tokenizer makes of it, in bytes per token.
_BYTES_PER_TOKEN = 3.9
_PAUSE = timedelta(minutes=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Story:
    """One conversation: the prompt of each generation (tokens), and what was written when.

    notes: by generation, kind and text of a reminder. clear_after: the agent clears by itself.
    sent: bytes by generation, where they are not what the tokens suggest.
    """

    name: str
    model: str
    pack: str
    minutes_ago: int
    prompts: tuple[int, ...]
    notes: dict[int, tuple[str, str]] = field(default_factory=dict)
    users: frozenset[int] = frozenset()
    clear_after: str = ""
    sent: tuple[int, ...] = ()


_NOTE = (
    "Tables invoice and invoice_line are moved; payment is next. Run `make check-billing` after "
    "each table."
)
_DRAFT = """\
## Goal and scope
Move billing from the v1 to the v2 schema, without downtime.
## Current progress
3 of 7 tables are moved and checked.
## Key decisions and constraints
Amounts stay integers, in cents. No new dependencies.
## Next steps
Move payment, then refund."""
_STORIES = (
    _Story(
        name="move-billing-to-v2",
        model="openai/gpt-4o",
        pack="code.migrate",
        minutes_ago=118,
        # Past caution (100,000) at the 6th, past critical (115,200) at the 12th; then a clear.
        prompts=(
            *(31_200, 48_900, 66_100, 81_700, 95_400),
            *(101_300, 103_800, 105_900, 107_700, 109_900, 112_600),
            *(116_000, 117_100, 118_400, 119_200, 120_500, 121_300),
            *(14_600, 21_900, 30_700, 38_200),
        ),
        notes={
            10: ("note", _NOTE),
            14: ("re_entry", _DRAFT),
        },
        users=frozenset({1, 18}),
    ),
    _Story(
        name="inventory-audit",
        model="openai/gpt-4o",
        pack="audit.stock",
        minutes_ago=34,
        # Nobody heeds the hard guidance; then the countdown runs.
        prompts=(
            *(42_800, 71_500, 94_000, 102_700, 104_100, 106_300, 108_800, 110_900, 112_000),
            *(116_800, 117_900),
        ),
        users=frozenset({1, 4}),
    ),
    _Story(
        name="contract-review",
        model="openai/gpt-4o",
        pack="legal.review",
        minutes_ago=21,
        prompts=(28_700, 57_300, 88_800, 101_900, 104_600),
        notes={5: ("note", "Clauses 4 and 9 differ from the template; 12 is missing.")},
        users=frozenset({1}),
        clear_after="Next: compare the annexes, then write the summary for the client.",
    ),
    _Story(
        name="meeting-minutes-local",
        model="ollama/llama3.1:8b",
        pack="minutes.write",
        minutes_ago=15,
        # A window of 4,096: what is longer is cut to half of it, and the server answers 200.
        prompts=(1_010, 1_390, 1_820, 2_260, 2_650, 2_050, 2_050),
        sent=(3_940, 5_420, 7_100, 8_810, 10_330, 17_900, 21_300),
        users=frozenset({1}),
    ),
)


def load_care(*, project: ProjectInfo, caller: str, now: datetime) -> int:
    """Play the stories, so that they end shortly before `now`. Gives the number of calls."""
    for story in _STORIES:
        _play(story, project=project, caller=caller, now=now)
    return sum(len(story.prompts) for story in _STORIES)


def _play(story: _Story, *, project: ProjectInfo, caller: str, now: datetime) -> None:
    at = now - timedelta(minutes=story.minutes_ago)
    for number, _ in enumerate(story.prompts, start=1):
        at = min(at + _PAUSE, now)
        care.advance(
            project=project,
            conversation=story.name,
            generation=number,
            has_user_prompt=number in story.users,
            model=story.model,
            now=at,
        )
        capture = _capture(story, number, at)
        record_calls(project=project, captures=[capture], caller=caller, now=at)
        if number in story.notes:
            kind, content = story.notes[number]
            care.add_reminder(
                actor=SHELL,
                project=project,
                conversation=story.name,
                content=content,
                kind=kind,
                now=at,
            )
    if story.clear_after:
        care.clear(
            actor=SHELL,
            project=project,
            conversation=story.name,
            reminder_content=story.clear_after,
            now=min(at + _PAUSE, now),
        )
    else:
        # What the agent is told before it goes on.
        care.advance(
            project=project,
            conversation=story.name,
            generation=len(story.prompts) + 1,
            model=story.model,
            now=min(at + _PAUSE, now),
        )


def _capture(story: _Story, number: int, at: datetime) -> Capture:
    prompt = story.prompts[number - 1]
    size = story.sent[number - 1] if story.sent else int(prompt * _BYTES_PER_TOKEN)
    # A fresh start: the history that is sent begins anew.
    begun = next(
        (at for at in range(number - 1, 0, -1) if story.prompts[at] < story.prompts[at - 1] // 2), 0
    )
    return Capture(
        id=f"demo-{story.name}-{number:02}",
        conversation=story.name,
        model=story.model,
        provider=story.model.split("/", 1)[0],
        pack=story.pack,
        usage={"prompt_tokens": prompt, "completion_tokens": 180 + 37 * (number % 5)},
        finish_reason="stop" if number in story.users else "tool_calls",
        http_status=200,
        raw_content_len=700 + 110 * (number % 4),
        latency_ms=1_900 + 230 * (number % 6),
        sent=SentSizes(
            bytes=size, messages=2 * (number - begun) + 1, tools_bytes=min(size // 3, 18_000)
        ),
        started_at=at,
    )
