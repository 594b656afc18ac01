"""What clients wrap around a user's words.

Agents send reminders, their surroundings and the output of local commands as texts of the user. A
re-entry package has to tell the user's task, so these are recognized by the table below, each row
with where it was seen. Only whole blocks at the beginning or the end of a text are taken for a
client's: a tag in the midst of a sentence, or one that is never closed, is the user's own. Nothing
here changes what is sent; texts that wait for an answer are carried as they came.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

# Blocks within blocks: `<task>` in `<user_message>`. More is nobody's client.
_MOST_LAYERS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrapper:
    """A client's block, `<tag …>` to `</tag>`. is_own: what it holds is the user's own words."""

    tag: str
    client: str
    source: str
    is_own: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """A client's text without tags, known by how it begins.

    until: where the client's part ends, and the user's may begin; "" where it is all the client's.
    """

    begins: str
    client: str
    source: str
    until: str = ""


def _tags(client: str, source: str, *tags: str, is_own: bool = False) -> tuple[Wrapper, ...]:
    return tuple(Wrapper(tag=tag, client=client, source=source, is_own=is_own) for tag in tags)


_CLAUDE, _CODEX, _CLINE, _CURSOR = "Claude Code", "Codex", "Cline, Roo, Kilo", "Cursor"
_WIRE = "seen on the wire, 2.1.197"
_TRANSCRIPTS = "its transcripts, 2026"

WRAPPERS: tuple[Wrapper, ...] = (
    *_tags(_CLAUDE, _WIRE, "system-reminder", "available-deferred-tools"),
    *_tags(
        _CLAUDE,
        _TRANSCRIPTS,
        *("command-name", "command-message", "command-contents", "local-command-caveat"),
        *("local-command-stdout", "local-command-stderr", "bash-stdout", "bash-stderr"),
        *("task-notification", "teammate-message", "user-prompt-submit-hook", "tick"),
        *("ide_opened_file", "ide_selection", "ide_diagnostics"),
    ),
    *_tags(_CLAUDE, _TRANSCRIPTS, "command-args", "bash-input", is_own=True),
    *_tags(_CODEX, "openai/codex, contextual user messages", "environment_context"),
    *_tags(
        _CODEX,
        "openai/codex, contextual user messages",
        *("user_instructions", "INSTRUCTIONS", "turn_aborted", "subagent_notification"),
        *("permissions instructions", "collaboration_mode", "personality_spec", "model_switch"),
        *("apps_instructions", "skills_instructions", "token_budget", "recommended_plugins"),
        *("codex_internal_context", "goal_context", "user_shell_command"),
    ),
    *_tags("Gemini CLI", "google-gemini/gemini-cli, environmentContext", "session_context"),
    *_tags("Gemini CLI", "google-gemini/gemini-cli, hooks", "hook_context", "loaded_context"),
    *_tags(_CLINE, "cline/cline and RooCodeInc/Roo-Code, task", "environment_details"),
    *_tags(_CLINE, "RooCodeInc/Roo-Code, mentions", "file_content", "explicit_instructions"),
    *_tags(_CLINE, "cline/cline, task", "task", "user_message", "feedback", is_own=True),
    *_tags(_CURSOR, "its transcripts, 2026", "timestamp", "system_reminder", "additional_data"),
    *_tags(_CURSOR, "its transcripts, 2026", "open_and_recently_viewed_files", "user_info"),
    *_tags(_CURSOR, "its transcripts, 2026", "user_query", is_own=True),
    *_tags("GitHub Copilot", "microsoft/vscode-copilot-chat, prompts", "environment_info"),
    *_tags("GitHub Copilot", "microsoft/vscode-copilot-chat, prompts", "workspace_info"),
    *_tags("GitHub Copilot", "microsoft/vscode-copilot-chat, prompts", "editorContext"),
    *_tags("GitHub Copilot", "microsoft/vscode-copilot-chat, prompts", "reminderInstructions"),
    *_tags("GitHub Copilot", "microsoft/vscode-copilot-chat, prompts", "userRequest", is_own=True),
    *_tags("Windsurf", "its prompts, 2025", "additional_metadata"),
    *_tags("Windsurf", "its prompts, 2025", "USER_REQUEST", is_own=True),
    *_tags("Goose", "block/goose, moim", "info-msg"),
    *_tags("OpenHands", "All-Hands-AI/OpenHands, prompts", "RUNTIME_INFORMATION"),
    *_tags("OpenHands", "All-Hands-AI/OpenHands, prompts", "REPOSITORY_INFO", "EXTRA_INFO"),
)

_REQUEST = "## My request for Codex:"
_AIDER = "Aider-AI/aider, base_prompts"
OPENINGS: tuple[Opening, ...] = (
    Opening(
        begins="# AGENTS.md instructions for ",
        client=_CODEX,
        source="openai/codex, user_instructions",
        until="</INSTRUCTIONS>",
    ),
    Opening(
        begins="# Context from my IDE setup:",
        client=f"{_CODEX} in an IDE",
        source="its rollouts, 2026",
        until=_REQUEST,
    ),
    Opening(
        begins="# Files mentioned by the user:",
        client=f"{_CODEX} in an IDE",
        source="its rollouts, 2026",
        until=_REQUEST,
    ),
    Opening(
        begins="[Request interrupted by user",
        client=_CLAUDE,
        source=_TRANSCRIPTS,
        until="]",
    ),
    Opening(
        begins="Caveat: The messages below were generated by the user while running local commands",
        client=_CLAUDE,
        source=_TRANSCRIPTS,
    ),
    Opening(
        begins="This is the Gemini CLI. We are setting up the context for our chat.",
        client="Gemini CLI",
        source="google-gemini/gemini-cli, environmentContext",
    ),
    Opening(
        begins="This is the Qwen Code. We are setting up the context for our chat.",
        client="Qwen Code",
        source="QwenLM/qwen-code, environmentContext",
    ),
    Opening(
        begins="Here is the user's editor context as a JSON object.",
        client="Gemini CLI",
        source="google-gemini/gemini-cli, client",
    ),
    Opening(
        begins="Called the Read tool with the following input:",
        client="opencode",
        source="anomalyco/opencode, session/prompt",
    ),
    Opening(begins="I have *added these files to the chat*", client="Aider", source=_AIDER),
    Opening(
        begins="I am not sharing any files that you can edit yet.", client="Aider", source=_AIDER
    ),
    Opening(
        begins="Here are summaries of some files present in my git", client="Aider", source=_AIDER
    ),
    Opening(begins="Here are some READ ONLY files", client="Aider", source=_AIDER),
)


def own_words(parts: Iterable[str]) -> str:
    """The user's own words in the texts of one message; empty where a client wrote all of it.

    Linear in the length of the texts, whatever they hold.
    """
    return "\n".join(said for part in parts if (said := _own(part)))


def _own(text: str) -> str:
    start, end = 0, len(text)
    for _ in range(_MOST_LAYERS):
        start = _after_leading(text, start, end)
        end = _before_trailing(text, start, end)
        inner = _within(text, start, end)
        if inner is None:
            break
        start, end = inner
    return text[start:end].strip()


_BY_TAG = {wrapper.tag: wrapper for wrapper in WRAPPERS}
# A tag with its attributes; what a user writes between "<" and ">" may be anything, and long.
_OPEN = re.compile(
    r"<(?P<tag>" + "|".join(sorted(map(re.escape, _BY_TAG), key=len, reverse=True)) + r")"
    r"(?:\s[^<>]{0,400})?>"
)
_CLOSE = re.compile(r"</(?P<tag>[\w -]{1,40})>\s*\Z")
_SPACE = re.compile(r"\s*")


def _after_leading(text: str, start: int, end: int) -> int:
    """Where the blocks of a client at the beginning end."""
    while True:
        start = _skip(text, start, end)
        after = _after_block(text, start, end)
        if after is None:
            return start
        start = after


def _after_block(text: str, start: int, end: int) -> int | None:
    """Where the client's block that begins here ends; None: there is none."""
    for opening in OPENINGS:
        if text.startswith(opening.begins, start, end):
            at = text.find(opening.until, start, end) if opening.until else -1
            return end if at < 0 else at + len(opening.until)
    found = _OPEN.match(text, start, end)
    if found is None or _BY_TAG[found["tag"]].is_own:
        return None
    return _closed(text, found["tag"], found.end(), end)


def _closed(text: str, tag: str, start: int, end: int) -> int | None:
    """Where a block ends whose tag was opened before `start`; None: it is never closed."""
    depth = 1
    marks = re.compile(f"<(?P<close>/?){re.escape(tag)}(?:\\s[^<>]{{0,400}})?>")
    for mark in marks.finditer(text, start, end):
        depth += -1 if mark["close"] else 1
        if depth == 0:
            return mark.end()
    return None


def _before_trailing(text: str, start: int, end: int) -> int:
    """Where the blocks of a client at the end begin: each on a line of its own."""
    while True:
        while end > start and text[end - 1].isspace():
            end -= 1
        close = _CLOSE.search(text, max(start, end - 64), end)
        wrapper = _BY_TAG.get(close["tag"]) if close else None
        if close is None or wrapper is None or wrapper.is_own:
            return end
        at = text.rfind(f"<{wrapper.tag}", start, close.start())
        if at <= start or text[at - 1] != "\n" or _OPEN.match(text, at, end) is None:
            return end
        end = at


def _within(text: str, start: int, end: int) -> tuple[int, int] | None:
    """What is in the block of the user's own words that the text is, if it is one."""
    found = _OPEN.match(text, start, end)
    if found is None or not _BY_TAG[found["tag"]].is_own:
        return None
    close = _closed(text, found["tag"], found.end(), end)
    if close is None or _skip(text, close, end) < end:
        return None
    return found.end(), text.rfind("</", found.end(), close)


def _skip(text: str, start: int, end: int) -> int:
    found = _SPACE.match(text, start, end)
    return found.end() if found else start
