"""The texts remediation gives an agent: soft, hard, critical, in our words or a project's own.

Source: what "Context Health Monitor" (docs/sources.md) wants told at each level. The shipped texts
are frozen under TEXTS_VERSION. They are kept short, for they go into a context that is full
already: at most 500 bytes for soft and 1,400 for the other two, whatever the conversation's name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from helmdash.core.care.remediation import COUNTDOWN, GRACE, Strength
from helmdash.core.care.reminders import template

TEXTS_VERSION = "texts-1"
# A page of writing; more would fill the small windows it warns about.
MAX_OWN_CHARS = 4_000

# Placeholders may repeat a long name: a rendered text stays within twice what may be written.
_MAX_RENDERED_CHARS = 2 * MAX_OWN_CHARS
# A longer name is written once instead of in each of the three sample calls.
_MAX_REPEATED_NAME = 64
_UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class GuidanceFacts:
    """What a text may tell about the conversation (tokens, generations); None is unknown."""

    conversation: str
    generation: int
    round_number: int
    prompt_tokens: int | None
    limit_tokens: int | None
    optimal_max_tokens: int
    critical_max_tokens: int | None
    remaining: int | None
    grace_left: int | None
    grace: int
    cadence: int
    reminders: int  # how many are kept now


DEFAULT_TEXTS: Mapping[Strength, str] = MappingProxyType(
    {
        Strength.SOFT: (
            "{headline}\n"
            "A full context makes a model overlook what it was told, and leaves little room to "
            "hand over.\n"
            "You may go on briefly: {grace_left} of {grace} notices left, this one included. After "
            "that you will be asked to write reminders. Finish the step at hand, and start to "
            "collect what a fresh start would need."
        ),
        Strength.HARD: (
            "{headline}\n"
            "The fuller the context, the more gets overlooked; what stands only in this history is "
            "gone after a clear.\n"
            "Now: call add_reminder or update_reminder at least once. Keep a draft of the re-entry "
            "package in your reminders ({reminders} so far), under the headings below, and write "
            "down what is still missing before it is safe to clear. Nothing missing? Then call "
            "clear_mind. This comes again after {cadence} generations without a reminder.\n"
            "{calls}\n"
            "No such tools? Then write the headings, filled in, into your answer as text.\n"
            "{template}"
        ),
        Strength.CRITICAL: (
            "{headline}\n"
            "The next requests may not fit any more. {countdown}\n"
            "If a user's message waits for an answer, answer it first. Then bring your reminders "
            "({reminders} so far) up to date with add_reminder or update_reminder, so that they "
            "hold all a fresh start needs, under the headings below; rough notes will do. Then "
            "call clear_mind: a new round starts with your reminders.\n"
            "{calls}\n"
            "No such tools? Then write the headings, filled in, into your answer as text.\n"
            "{template}"
        ),
    }
)

# Told once, in place of a clear (core.care.remediation.brake); not a project's to change.
_BRAKE = (
    "[HelmDash] This context is full, and HelmDash does not clear it any more: the last two rounds "
    "took the same steps and brought neither an answer for the user nor a changed reminder.\n"
    "Do not take those steps again. Tell the user in your answer what you have found and what "
    "stops you; or write it down, and HelmDash goes on:\n"
    "{calls}"
)

PLACEHOLDERS: Mapping[str, str] = MappingProxyType(
    {
        "headline": "one line: the level and the figures that are known",
        "countdown": "a sentence: how many generations are left, and what happens then",
        "remaining": "generations left after this one before the clear",
        "grace_left": "soft guidances left, this one included",
        "grace": "soft guidances in all",
        "cadence": "generations between two hard guidances",
        "prompt_tokens": "tokens of the latest prompt",
        "limit_tokens": "tokens the model can take",
        "percent": "the prompt as a percentage of the limit",
        "optimal_max_tokens": "the line above which the level is caution",
        "critical_max_tokens": "the line above which the level is critical",
        "conversation": "the conversation's id",
        "generation": "the generation that starts now",
        "round": "the round it belongs to",
        "reminders": "how many reminders are kept now",
        "calls": "sample calls of add_reminder, update_reminder and clear_mind",
        "template": "the six empty headings of the re-entry package",
    }
)


def _sample(*, prompt: int, remaining: int | None = None, left: int | None = None) -> GuidanceFacts:
    return GuidanceFacts(
        conversation="agent-7",
        generation=42,
        round_number=2,
        prompt_tokens=prompt,
        limit_tokens=200_000,
        optimal_max_tokens=100_000,
        critical_max_tokens=180_000,
        remaining=remaining,
        grace_left=left,
        grace=GRACE,
        cadence=10,
        reminders=3,
    )


# For previews: a 200k window, once in each strength.
SAMPLE_FACTS: Mapping[Strength, GuidanceFacts] = MappingProxyType(
    {
        Strength.SOFT: _sample(prompt=112_400, left=2),
        Strength.HARD: _sample(prompt=131_900),
        Strength.CRITICAL: _sample(prompt=186_200, remaining=COUNTDOWN - 2),
    }
)


def render(strength: Strength, facts: GuidanceFacts, own: str = "") -> str:
    """Fill a text's placeholders: the project's `own`, or ours when it is blank.

    Unknown figures read "unknown"; `{{` and `}}` give braces; what is no placeholder stays as it
    is written. Never raises: a text that was saved must not stop a conversation.
    """
    text = own if own.strip() else DEFAULT_TEXTS[strength]
    values = _values(strength, facts)
    filled = _BRACES.sub(lambda found: _fill(found, values), text)
    return filled[:_MAX_RENDERED_CHARS]


def brake_text(conversation: str) -> str:
    """What an agent is told when care stops clearing."""
    return _BRAKE.format(calls=_calls(conversation))


def text_problems(own: str) -> tuple[str, ...]:
    """Name what is wrong with a project's own text, a sentence each; none for a blank one."""
    problems = []
    if len(own) > MAX_OWN_CHARS:
        problems.append(
            f"The text has {len(own):,} characters; shorten it to {MAX_OWN_CHARS:,} at most."
        )
    if "\0" in own:
        problems.append("The text holds a NUL character; remove it.")
    names = dict.fromkeys(found["name"] for found in _BRACES.finditer(own) if found["name"])
    known = ", ".join(PLACEHOLDERS)
    problems += [
        f"Unknown placeholder {{{_shown(name)}}}. Known ones: {known}."
        for name in names
        if name not in PLACEHOLDERS
    ]
    if any(found[0] in ("{", "}", "{}") for found in _BRACES.finditer(own)):
        problems.append("A brace stands alone; write {{ or }} where a brace is meant.")
    return tuple(problems)


_BRACES = re.compile(r"\{\{|\}\}|\{(?P<name>[^{}]*)\}|[{}]")
_TITLES = {Strength.SOFT: "caution", Strength.HARD: "caution", Strength.CRITICAL: "critical"}


def _fill(found: re.Match[str], values: Mapping[str, str]) -> str:
    if found[0] in ("{{", "}}"):
        return found[0][0]
    return values.get(found["name"] or "", found[0])


def _shown(name: str) -> str:
    """Cut a name for a problem: a whole paragraph may stand between two braces."""
    return name if len(name) <= 40 else f"{name[:40]}…"


def _values(strength: Strength, facts: GuidanceFacts) -> dict[str, str]:
    return {
        "headline": f"[HelmDash] Context level: {_TITLES[strength]}{_figures(facts)}.",
        "countdown": _countdown(facts.remaining),
        "remaining": _number(facts.remaining),
        "grace_left": _number(facts.grace_left),
        "grace": _number(facts.grace),
        "cadence": _number(facts.cadence),
        "prompt_tokens": _number(facts.prompt_tokens),
        "limit_tokens": _number(facts.limit_tokens),
        "percent": _percent(facts),
        "optimal_max_tokens": _number(facts.optimal_max_tokens),
        "critical_max_tokens": _number(facts.critical_max_tokens),
        "conversation": facts.conversation,
        "generation": str(facts.generation),
        "round": str(facts.round_number),
        "reminders": _number(facts.reminders),
        "calls": _calls(facts.conversation),
        "template": template(),
    }


def _number(value: int | None) -> str:
    return _UNKNOWN if value is None else f"{value:,}"


def _percent(facts: GuidanceFacts) -> str:
    if facts.prompt_tokens is None or not facts.limit_tokens:
        return _UNKNOWN
    return f"{facts.prompt_tokens * 100 // facts.limit_tokens}"


def _figures(facts: GuidanceFacts) -> str:
    """Say what is known of the figures; nothing at all rather than "unknown of unknown"."""
    if facts.prompt_tokens is None:
        return ""
    if not facts.limit_tokens:
        return f", {facts.prompt_tokens:,} prompt tokens"
    of_limit = f"{facts.prompt_tokens:,} of {facts.limit_tokens:,} prompt tokens"
    return f", {of_limit} ({_percent(facts)} %)"


def _countdown(remaining: int | None) -> str:
    if remaining is None:
        return "HelmDash will soon clear this context by itself."
    if remaining <= 0:
        return (
            "Countdown: 0. This is the last generation; before the next one HelmDash clears this "
            "context by itself."
        )
    left = "1 more generation" if remaining == 1 else f"{remaining:,} more generations"
    return f"Countdown: {remaining:,}. After {left} HelmDash clears this context by itself."


def _calls(conversation: str) -> str:
    """Give calls that can be copied; the arguments are those of the API and the MCP tools."""
    is_short = len(conversation) <= _MAX_REPEATED_NAME
    name = f'conversation="{conversation}", ' if is_short else ""
    lines = [
        f'add_reminder({name}content="Next steps: ...")',
        f'update_reminder({name}reminder_id="...", content="...")',
        f'clear_mind({name}reminder_content="...")',
    ]
    if not is_short:
        lines.insert(0, f'In each call pass conversation="{conversation}"')
    return "\n".join(lines)
