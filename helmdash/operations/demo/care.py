"""Demo conversations that are cared for: guidance, reminders, a countdown, clears, a silent cut.

They take the steps that an agent would: ask `advance`, make the call, write a reminder now and
then; only the times are moved. What the demo shows is what the rules make of it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from helmdash.core.access.permissions import SHELL
from helmdash.core.calls.capture import Capture, SentSizes
from helmdash.operations import care
from helmdash.operations.demo.composing import composition
from helmdash.operations.demo.fixtures import Fixture, read_fixture, time_of
from helmdash.operations.recording.calls import record_calls
from helmdash.queries.access.access import ProjectInfo

# English text with a catalog of tools: what OpenAI's tokenizer makes of it, in bytes per token.
_BYTES_PER_TOKEN = 3.9
# A system prompt of a page.
_SYSTEM_BYTES = 5_200
_PAUSE = timedelta(minutes=2)
# OpenAI's cache of prefixes counts in steps of so many tokens.
_CACHE_STEP = 128


def load_care(
    *, project: ProjectInfo, caller: str, now: datetime, before_each: Callable[[str], None]
) -> int:
    """Play the conversations, so that they end shortly before `now`. Gives the number of calls.

    before_each: hears of each, by its id.
    """
    conversations: list[Fixture] = read_fixture("care")["conversations"]
    for told in conversations:
        before_each(told["conversation"])
        _play(told, project=project, caller=caller, now=now)
    return sum(len(told["prompt_tokens"]) for told in conversations)


def _play(told: Fixture, *, project: ProjectInfo, caller: str, now: datetime) -> None:
    at = time_of(told, now)
    for generation, _ in enumerate(told["prompt_tokens"], start=1):
        at = min(at + _PAUSE, now)
        _advance(told, generation, project=project, now=at)
        capture = _capture(told, generation, at)
        record_calls(project=project, captures=[capture], caller=caller, now=at)
        for reminder in told.get("reminders", ()):
            if reminder["generation"] == generation:
                care.add_reminder(
                    actor=SHELL,
                    project=project,
                    conversation=told["conversation"],
                    content=reminder["content"],
                    kind=reminder["kind"],
                    now=at,
                )
    at = min(at + _PAUSE, now)
    if "clear_after" not in told:
        # What the agent is told before it goes on.
        _advance(told, len(told["prompt_tokens"]) + 1, project=project, now=at)
        return
    care.clear(
        actor=SHELL,
        project=project,
        conversation=told["conversation"],
        reminder_content=told["clear_after"],
        now=at,
    )


def _advance(told: Fixture, generation: int, *, project: ProjectInfo, now: datetime) -> None:
    care.advance(
        project=project,
        conversation=told["conversation"],
        generation=generation,
        has_user_prompt=generation in told["user_prompts_at"],
        model=told["model"],
        now=now,
    )


def _capture(told: Fixture, generation: int, at: datetime) -> Capture:
    prompts: list[int] = told["prompt_tokens"]
    prompt = prompts[generation - 1]
    sent = told.get("sent_bytes")
    size = sent[generation - 1] if sent else int(prompt * _BYTES_PER_TOKEN)
    tools_bytes = min(size // 3, 18_000)
    # A fresh start: the history that is sent begins anew.
    begun = next(
        (at for at in range(generation - 1, 0, -1) if prompts[at] < prompts[at - 1] // 2), 0
    )
    return Capture(
        id=f"demo-{told['conversation']}-{generation:02}",
        conversation=told["conversation"],
        model=told["model"],
        provider=told["model"].split("/", 1)[0],
        pack=told["pack"],
        usage=_usage(told, generation, tools_tokens=int(tools_bytes / _BYTES_PER_TOKEN)),
        finish_reason="stop" if generation in told["user_prompts_at"] else "tool_calls",
        http_status=200,
        raw_content_len=700 + 110 * (generation % 4),
        latency_ms=1_900 + 230 * (generation % 6),
        sent=SentSizes(bytes=size, messages=2 * (generation - begun) + 1, tools_bytes=tools_bytes),
        composition=composition(
            size,
            system_bytes=min(size // 10, _SYSTEM_BYTES),
            tools_bytes=tools_bytes,
            shares={"read_file": 14, told["pack"]: 9, "bash": 7},
        ),
        started_at=at,
    )


def _usage(told: Fixture, generation: int, *, tools_tokens: int) -> dict[str, object]:
    """As the provider reports it. OpenAI tells what its cache held: the prompt before, or the
    tools alone where the history was begun anew. The local ones tell of no cache."""
    prompts: list[int] = told["prompt_tokens"]
    prompt = prompts[generation - 1]
    usage: dict[str, object] = {
        "prompt_tokens": prompt,
        "completion_tokens": 180 + 37 * (generation % 5),
    }
    if told["model"].startswith("openai/"):
        before = prompts[generation - 2] if generation > 1 else 0
        held = before if before < prompt else tools_tokens
        usage["prompt_tokens_details"] = {"cached_tokens": held - held % _CACHE_STEP}
    return usage
