"""Side calls of agents that do not say so, told by the words of the agent's own prompts.

A row is an agent, where it says it, how, and what for. Taken from the agents' own requests (Claude
Code 2.1.197, Gemini CLI 0.61.0, opencode 1.18.33, Qwen Code 0.24.4), their packages (Qwen Code's
title and recap) and their public sources (Open WebUI, pi, Roo Code). Shy, as a turn that is taken
for a side call would be missing in the curve: a row counts for its own agent only, and its words
are those of a fixed prompt.

Qwen Code's compaction is none of them: its calls name no conversation, and the summary by which the
next one is known is left by a turn alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from helmdash.core.agents.values import RequestFacts

# A fixed prompt says at once what it wants; what a user pastes further down does not count.
_READ_CHARS = 1_500

TITLE, COMPACTION, CLASSIFY, AUXILIARY = "title", "compaction", "classify", "auxiliary"


@dataclass(frozen=True, slots=True)
class _Prompt:
    clients: frozenset[str]
    purpose: str
    words: re.Pattern[str]
    is_system: bool = False


def _prompt(clients: str, purpose: str, words: str, *, is_system: bool = False) -> _Prompt:
    pattern = re.compile(words, re.I)
    return _Prompt(frozenset(clients.split()), purpose, pattern, is_system)


_SUMMARY = r"your task is to create a detailed summary of the (?:conversation|recent portion)"
_PROMPTS = (
    _prompt("claude-code roo-code kilo-code", COMPACTION, _SUMMARY),
    _prompt("roo-code kilo-code", COMPACTION, _SUMMARY, is_system=True),
    _prompt("claude-code", "suggest", r"\A\[suggestion mode:"),
    _prompt("opencode", TITLE, r"\A\s*you are a title generator", is_system=True),
    _prompt(
        "opencode",
        COMPACTION,
        r"\A\s*you are (?:an anchored context summarization assistant|a context summarization agent"
        r"|a helpful ai assistant tasked with summarizing conversations)",
        is_system=True,
    ),
    _prompt(
        "qwen-code", "memory", r"\A\s*you are now acting as the managed memory", is_system=True
    ),
    _prompt(
        "qwen-code",
        TITLE,
        r"\A\s*generate a concise, [^.]{0,40} title [^.]* session",
        is_system=True,
    ),
    _prompt("qwen-code", AUXILIARY, r"\A\s*you generate session recaps", is_system=True),
    _prompt("pi", COMPACTION, r"\A\s*you are a context summarization assistant", is_system=True),
    _prompt("open-webui", TITLE, r"\A### task:\s+generate a concise, [^.]{0,40} title"),
    _prompt("open-webui", CLASSIFY, r"\A### task:\s"),
)
# Of a reply's JSON the members by which an agent asks a model to decide something for it.
_SCHEMAS = (
    ("claude-code", "title", TITLE),
    ("gemini-cli", "complexity_score", CLASSIFY),
    ("gemini-cli", "model_choice", CLASSIFY),
    ("gemini-cli", "next_speaker", CLASSIFY),
    ("gemini-cli", "unproductive_state_confidence", CLASSIFY),
)


def side_purpose(client: str, facts: RequestFacts) -> str | None:
    """What a side call of this agent is for; None for a turn, and where nothing tells."""
    if not facts.has_tools:
        for name, member, purpose in _SCHEMAS:
            if name == client and member in facts.schema_members:
                return purpose
    for each in _PROMPTS:
        if client not in each.clients:
            continue
        texts = facts.system if each.is_system else facts.last_user
        if any(each.words.search(text[:_READ_CHARS]) for text in texts):
            return each.purpose
    return None
