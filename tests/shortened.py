"""Sessions with shortened prompts, as docs/net-value.md has them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from helmdash.core.calls.capture import Capture, CapturedTrim, SentSizes
from tests.factories import NOW, make_capture

CLAUDE: Final = "anthropic/claude-sonnet-4-5"
GPT: Final = "openai/gpt-4o"


def at(minutes: float) -> datetime:
    return NOW - timedelta(hours=2) + timedelta(minutes=minutes)


def claude(minutes: float, plain: int, read: int, written: int, out: int, **over: Any) -> Capture:
    """A call as Anthropic reports it: three counters beside each other."""
    usage = {
        "input_tokens": plain,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
        "output_tokens": out,
    }
    return make_capture(
        id=f"c{minutes:g}", model=CLAUDE, usage=usage, started_at=at(minutes), **over
    )


# As in the document: the call before, the one that wrote the summary, and those after.
SESSION = (
    claude(0, 4, 0, 118_000, 300, context="0"),
    claude(1, 6, 118_000, 42_000, 350, context="0"),
    claude(2, 900, 160_000, 0, 2_100, context="0", purpose="compaction"),
    claude(3, 8, 12_000, 9_000, 410, context="1"),
    claude(4, 8, 21_000, 500, 200, context="1"),
)


def gpt(name: str, minutes: float, tokens: int, cached: int | None, **over: Any) -> Capture:
    usage: dict[str, Any] = {"prompt_tokens": tokens, "completion_tokens": 50}
    if cached is not None:
        usage["prompt_tokens_details"] = {"cached_tokens": cached}
    return make_capture(id=name, usage=usage, started_at=at(minutes), **over)


TRIMMED = (
    gpt("plain", 10, 11_000, 10_240, conversation="fitted"),
    gpt(
        "cut",
        11,
        12_000,
        2_048,
        conversation="fitted",
        trim=CapturedTrim(before_bytes=68_000, after_bytes=48_000),
        sent=SentSizes(bytes=48_000, messages=3),
    ),
)
