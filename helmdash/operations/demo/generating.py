"""Made-up calls in any number, for trying out and measuring a full HelmDash.

They are recorded as real ones are (operations.recording.calls), in the order of their times and
with the conversations of an hour interleaved, so that every row is judged, numbered and laid out
on disk as a recorded one would be. They live in a project of their own.
"""

from __future__ import annotations

import heapq
import random
from bisect import bisect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Any

from helmdash.core.access.permissions import Actor, Right, require
from helmdash.core.budgets.budgets import PromptVariant
from helmdash.core.calls.capture import STRUCTURED_PURPOSES, Capture, CapturedTrim, SentSizes
from helmdash.operations.demo.composing import composition
from helmdash.operations.recording.calls import record_calls
from helmdash.operations.rollups.folding import fold_all
from helmdash.queries.access.access import ProjectInfo, project_info
from helmdash.queries.calls.calls import newest_mark
from helmdash.records.models import Payload, Project
from helmdash.records.statements.bulk import analyze

GENERATED_SLUG = "generated"
# Real conversations of agents are of a few dozen calls; the lengths spread widely around it.
CALLS_PER_CONVERSATION = 40
_DAYS = 30
# One transaction: large enough that its fixed cost vanishes, small enough to hold in memory.
_CHUNK = 4000
_CALLER = "generator"


class GenerateError(Exception):
    """The project cannot be filled; the message says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """How many calls and conversations were made, and of which project."""

    project: ProjectInfo
    calls: int
    conversations: int


def generate_calls(
    *,
    actor: Actor,
    calls: int,
    now: datetime,
    conversations: int | None = None,
    slug: str = GENERATED_SLUG,
    seed: int = 1,
    force: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Generated:
    """Record made-up calls of the last 30 days up to `now`, the same ones for the same seed.

    The project is made if it is missing. `progress` hears how many are stored, after each
    transaction. Raises GenerateError when the project has calls already and `force` is not set,
    or when it is the default or the demo project, and Forbidden: it may make a project.
    """
    require(actor, Right.ADMINISTER, project_id=None)
    project = project_to_fill(slug)
    mark = newest_mark(project_id=project.id)
    if mark and not force:
        raise GenerateError(f"{slug} has calls already; add more with --force, or name another")
    tag = f"{mark:x}-" if mark else ""
    count = min(calls, conversations or max(1, calls // CALLS_PER_CONVERSATION))
    chance = random.Random(seed)  # noqa: S311  (made-up data, and the same for the same seed)
    done = 0
    made = made_calls(chance, calls=calls, conversations=count, tag=tag, now=now)
    for chunk in chunks(made):
        at = chunk[-1].started_at
        assert at is not None
        record_calls(project=project, captures=chunk, caller=_CALLER, now=at)
        done += len(chunk)
        if progress is not None:
            progress(done)
    fold_all()
    analyze()
    return Generated(project=project, calls=done, conversations=count)


def project_to_fill(slug: str) -> ProjectInfo:
    """The project of made-up calls, made if it is missing. Raises GenerateError."""
    row, _ = Project.objects.get_or_create(
        slug=slug, defaults={"name": slug.title(), "payload": Payload.FULL.value}
    )
    if row.is_default or row.is_demo:
        raise GenerateError(f"{slug} holds calls that are not made up; name another with --project")
    return project_info(row)


def chunks(calls: Iterator[Capture]) -> Iterator[list[Capture]]:
    """The calls in lists that one transaction each holds well."""
    chunk: list[Capture] = []
    for call in calls:
        chunk.append(call)
        if len(chunk) == _CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


# --- what the calls look like


@dataclass(frozen=True, slots=True, kw_only=True)
class _Model:
    """A model as agents use it: how its prompts grow (tokens), and how it speaks."""

    name: str
    share: int
    start: int
    growth: int
    reset_at: int
    """Where careful agents begin anew; careless ones go on."""
    reports_usage: bool = True

    @property
    def variant(self) -> str:
        """The prompt it plans with: small and free models pick one step at a time."""
        is_small = self.reset_at < 50_000
        return (PromptVariant.SINGLE_PICK if is_small else PromptVariant.FULL_STEPS).value


_MODELS = (
    _Model(name="openai/gpt-4o", share=24, start=4_000, growth=1_700, reset_at=100_000),
    _Model(name="openai/gpt-4o-mini", share=16, start=2_500, growth=900, reset_at=90_000),
    _Model(name="anthropic/claude-sonnet-4", share=20, start=9_000, growth=2_900, reset_at=150_000),
    _Model(name="google/gemini-2.5-pro", share=12, start=8_000, growth=4_500, reset_at=400_000),
    _Model(name="deepseek/deepseek-chat", share=8, start=3_000, growth=1_100, reset_at=52_000),
    _Model(
        name="openrouter/meta-llama/llama-3.3-70b-instruct:free",
        share=8,
        start=1_500,
        growth=700,
        reset_at=14_000,
    ),
    _Model(name="mistral/mistral-large", share=5, start=3_000, growth=1_300, reset_at=90_000),
    _Model(name="ollama/llama3.1:8b", share=4, start=1_200, growth=500, reset_at=7_000),
    # A local server that reports no usage: its conversations stay unknown.
    _Model(name="local/phi-4", share=3, start=900, growth=400, reset_at=9_000, reports_usage=False),
)
_PACKS = ("research", "browser", "coder", "mailer", "reports", "triage", "archive", "translate")
# (purpose, share): most calls are chat, a plan comes with its filter pass.
_PURPOSES = {"chat": 80, "plan": 9, "route": 6, "filter": 3, "verify": 2}
_TRIMMED_SHARE = 0.12
_TEXT_SHARE = 0.10
# Of so many series of calls, one names no conversation.
_ONE_LONE_IN = 50
_CARELESS_SHARE = 0.25

# (share of all calls in 10,000, what the call says instead of a good answer)
_FAILURES: tuple[tuple[int, dict[str, Any]], ...] = (
    (120, {"http_status": 429, "error_message": "Rate limit reached for requests"}),
    (80, {"finish_reason": "length", "purpose": "plan", "content": '{"steps": [{"tool": "sea'}),
    (60, {"http_status": 503, "error_message": "The engine is overloaded"}),
    (50, {"finish_reason": None, "content": ""}),
    (45, {"finish_reason": "stop", "content": ""}),
    (40, {"http_status": 400, "error_message": "maximum context length is 128000 tokens"}),
    (40, {"finish_reason": "stop", "purpose": "plan", "content": "I would search first."}),
    (35, {"finish_reason": "content_filter", "content": ""}),
    (30, {"http_status": None, "error_code": "timeout", "error_message": "timed out after 60 s"}),
    (25, {"finish_reason": "stop", "purpose": "route", "content": '{"tool": "search", "args": {'}),
    (20, {"http_status": None, "error_code": "connect", "error_message": "connection refused"}),
    (15, {"http_status": 401, "error_message": "Incorrect API key provided"}),
    (15, {"http_status": 499, "status": "cancelled"}),
    (10, {"finish_reason": "refusal", "content": "I cannot help with that."}),
    (10, {"finish_reason": "stop", "purpose": "plan", "content": '{"steps": []}'}),
)
# Added up once: adding them up is most of a choice, and each call makes several.
_FAILURE_SUMS = list(accumulate(share for share, _ in _FAILURES))
_PURPOSE_NAMES, _PURPOSE_SUMS = list(_PURPOSES), list(accumulate(_PURPOSES.values()))


@dataclass(slots=True)
class _Talk:
    """One conversation while it is being made; lone calls are talks without a name."""

    name: str | None
    model: _Model
    pack: str
    left: int
    pause: float
    """Seconds between two calls, on average."""
    is_careless: bool
    prompt: int
    number: int = 0


def made_calls(
    chance: random.Random,
    *,
    calls: int,
    tag: str,
    now: datetime,
    conversations: int | None = None,
    days: int = _DAYS,
    text_share: float = _TEXT_SHARE,
    longest: int | None = None,
) -> Iterator[Capture]:
    """Made-up calls in the order of their times: a heap of the conversations that are under way.

    tag: what begins every name. text_share: of how many there are texts. longest: calls of the
    first conversation, whose length is left to chance else. The same for the same arguments.
    """
    start, seconds = now - timedelta(days=days), days * 86_400
    due: list[tuple[float, int, _Talk]] = []
    count = conversations or max(1, calls // CALLS_PER_CONVERSATION)
    for order, length in enumerate(_lengths(chance, calls, count, longest)):
        is_lone = order % _ONE_LONE_IN == _ONE_LONE_IN - 1
        talk = _talk(chance, None if is_lone else f"{tag}agent-{order:06d}", length)
        span = seconds - talk.pause * length * 1.2
        heapq.heappush(due, (chance.random() * max(span, 3600.0), order, talk))
    for number in range(calls):
        at, order, talk = due[0]
        # The last call of a long conversation may drift past the end; time stops at `now`.
        moment = min(start + timedelta(seconds=at), now)
        yield _call(chance, talk, f"{tag}call-{number:08d}", moment, text_share)
        talk.left -= 1
        if talk.left:
            pause = chance.expovariate(1 / talk.pause)
            heapq.heapreplace(due, (at + pause, order, talk))
        else:
            heapq.heappop(due)


def _lengths(
    chance: random.Random, calls: int, conversations: int, longest: int | None
) -> list[int]:
    """Lengths that add up to `calls`: most conversations short, a few very long."""
    if longest is not None and conversations > 1 and longest + conversations <= calls:
        rest = _lengths(chance, calls - longest, conversations - 1, None)
        return [longest, *rest]
    weights = [chance.lognormvariate(0, 1.1) for _ in range(conversations)]
    spare = calls - conversations
    total = sum(weights)
    lengths = [1 + int(spare * weight / total) for weight in weights]
    lengths[0] += calls - sum(lengths)
    return lengths


def _talk(chance: random.Random, name: str | None, length: int) -> _Talk:
    model = chance.choices(_MODELS, [model.share for model in _MODELS])[0]
    return _Talk(
        name=name,
        model=model,
        pack=chance.choice(_PACKS),
        left=length,
        pause=min(chance.lognormvariate(5.0, 1.0), 20 * 86_400 / length),
        is_careless=chance.random() < _CARELESS_SHARE,
        prompt=int(model.start * chance.uniform(0.5, 2.0)),
    )


def _call(
    chance: random.Random, talk: _Talk, name: str, at: datetime, text_share: float
) -> Capture:
    talk.number += 1
    trim = _grow(chance, talk)
    purpose = chance.choices(_PURPOSE_NAMES, cum_weights=_PURPOSE_SUMS)[0]
    call = Capture(
        id=name,
        conversation=talk.name,
        model=talk.model.name,
        provider=talk.model.name.split("/")[0],
        pack=talk.pack,
        purpose=purpose,
        correlation_id=f"trace-{name[:-1]}" if chance.random() < 0.1 else None,
        usage=_usage(chance, talk),
        finish_reason="tool_calls" if chance.random() < 0.3 else "stop",
        http_status=200,
        raw_content_len=chance.randint(40, 6_000),
        latency_ms=int(chance.lognormvariate(7.6, 0.8)),
        ttft_ms=int(chance.lognormvariate(6.0, 0.6)),
        trim=trim,
        sent=SentSizes(bytes=talk.prompt * 4, messages=talk.number + 1, tools_bytes=18_000),
        composition=composition(
            talk.prompt * 4,
            system_bytes=6_000,
            tools_bytes=18_000,
            shares={"read_file": 15, "bash": 10, talk.pack: 3},
        ),
        metadata={"step": talk.number},
        started_at=at,
    )
    if chance.random() < text_share:
        call = replace(call, **_texts(chance, talk, call.purpose))
    kind = bisect(_FAILURE_SUMS, chance.random() * 10_000)
    if kind < len(_FAILURES):
        call = _failed(call, _FAILURES[kind][1])
    # A failure may have made a plan of it; only plans have variants of their prompt.
    return replace(call, prompt_variant=talk.model.variant) if call.purpose == "plan" else call


def _grow(chance: random.Random, talk: _Talk) -> CapturedTrim | None:
    """The next prompt is longer, until a careful agent cuts it down."""
    talk.prompt += int(talk.model.growth * chance.lognormvariate(-0.2, 0.7))
    if talk.prompt > talk.model.reset_at * (1.6 if talk.is_careless else 1.0):
        before = talk.prompt
        talk.prompt = int(talk.model.start * chance.uniform(1.0, 3.0))
        return CapturedTrim(
            before_bytes=before * 4, after_bytes=talk.prompt * 4, dropped=("history.oldest",)
        )
    if chance.random() < _TRIMMED_SHARE:
        catalog = chance.randint(12_000, 36_000)
        return CapturedTrim(
            before_bytes=catalog,
            after_bytes=catalog - chance.randint(500, 9_000),
            dropped=("metadata.limitations", "metadata.typical_use"),
        )
    return None


def _usage(chance: random.Random, talk: _Talk) -> dict[str, object] | None:
    # One call in a hundred comes without usage from anybody: a stream that broke off.
    if not talk.model.reports_usage or chance.random() < 0.01:
        return None
    answer = chance.randint(20, 1_200)
    cached = int(talk.prompt * chance.uniform(0.3, 0.9))
    if talk.model.name.startswith("anthropic/"):
        return {
            "input_tokens": talk.prompt - cached,
            "cache_read_input_tokens": cached,
            "cache_creation_input_tokens": 0,
            "output_tokens": answer,
        }
    return {
        "prompt_tokens": talk.prompt,
        "completion_tokens": answer,
        "total_tokens": talk.prompt + answer,
        "prompt_tokens_details": {"cached_tokens": cached},
    }


def _texts(chance: random.Random, talk: _Talk, purpose: str) -> dict[str, Any]:
    """A short history, its beginning the same for every call of a pack, and an answer."""
    words = " ".join(chance.choices(_WORDS, k=60))
    answer = " ".join(chance.choices(_WORDS, k=40))
    is_structured = purpose in STRUCTURED_PURPOSES
    return {
        "messages": (
            {"role": "system", "content": f"You are the {talk.pack} agent. Use the tools given."},
            {"role": "user", "content": f"Task {talk.number}: {words}"},
        ),
        "content": f'{{"steps": [{{"tool": "{talk.pack}.run"}}]}}' if is_structured else answer,
        "raw_content_len": None,
    }


def _failed(call: Capture, changes: Mapping[str, Any]) -> Capture:
    """The same call gone wrong; a reply that never came reports no usage and no length."""
    given: dict[str, Any] = {"raw_content_len": None, "content": None, **changes}
    status = given.get("http_status", 200)
    if status != 200:
        given |= {"usage": None, "finish_reason": None, "ttft_ms": None}
    return replace(call, **given)


_WORDS = (
    "open the report list every invoice compare totals with last month find three sources about "
    "heat pumps summarise them in two lines draft a reply to the customer check the calendar for "
    "friday rename files by date convert the table to csv explain the error in plain words"
).split()
