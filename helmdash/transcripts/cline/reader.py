"""Tasks of Cline, and of Roo Code and Kilo Code that came of it: VS Code keeps a folder for each.

A request is one message that is written anew as it goes on; it counts once it has figures or has
ended otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from helmdash.transcripts.calls import (
    Compaction,
    Origin,
    Tokens,
    TranscriptCall,
    count_of,
    member,
    moment_of,
    sum_of,
    text_of,
)
from helmdash.transcripts.reading import Home, WholeFile, read_document

_EDITORS = (
    *("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf", "Trae"),
    *("code-server", "Code - OSS"),
)


@dataclass(frozen=True)
class _Extension:
    client: str
    folder: str
    adds_cache: bool  # whether tokens of the cache stand beside the input


_EXTENSIONS = (
    _Extension("cline", "saoudrizwan.claude-dev", adds_cache=True),
    _Extension("roo-code", "rooveterinaryinc.roo-cline", adds_cache=False),
    _Extension("kilo-code", "kilocode.kilo-code", adds_cache=False),
)
_ENDED = {"user_cancelled": "cancelled"}


class ClineReader:
    """Tasks of the three extensions in every editor."""

    name = "cline"

    def files(self, home: Home) -> Iterator[Path]:
        """The messages of each task."""
        roots = [
            place / "User" / "globalStorage" / extension.folder
            for place in [
                *(home.settings(editor) for editor in _EDITORS),
                home.path / ".vscode-server" / "data",
            ]
            for extension in _EXTENSIONS
        ]
        for root in (*roots, home.path / ".cline" / "data"):
            tasks = root / "tasks"
            if not tasks.is_dir() or tasks.is_symlink():
                continue
            for task in sorted(tasks.iterdir()):
                path = task / "ui_messages.json"
                if not task.is_symlink() and path.is_file() and not path.is_symlink():
                    yield path

    def open(self, path: Path) -> TaskFile:
        """A reader of one task."""
        folder = path.parent.parent.parent.name
        known = [each for each in _EXTENSIONS if each.folder == folder]
        return TaskFile(path, known[0] if known else _EXTENSIONS[0])


class TaskFile(WholeFile):
    """One task, read whole each time."""

    def __init__(self, path: Path, extension: _Extension) -> None:
        super().__init__(path)
        self._extension = extension
        self._given: dict[str, bool] = {}

    def read(self, *, is_final: bool) -> Iterator[TranscriptCall]:
        """See FileReader."""
        messages = read_document(self._path)
        if not isinstance(messages, list):
            self.left_out["unreadable files"] = 1
            return
        models = self._models()
        compaction: Compaction | None = None
        contexts = under_way = 0
        for number, message in enumerate(messages, start=1):
            found = _compaction(message)
            if found is not None:
                compaction, contexts = found, contexts + 1
            call = self._call(number, message, models)
            if call is None:
                under_way += member(message, "say") == "api_req_started"
                continue
            call.compaction, compaction = compaction, None
            call.context = str(contexts)
            if call.id not in self._given:
                self._given[call.id] = True
                yield call
        self.left_out["requests without an end"] = under_way

    def _models(self) -> list[tuple[int, str, str | None]]:
        """Since when which model, and whose, the task has used; oldest first."""
        try:
            told = member(read_document(self._path.with_name("task_metadata.json")), "model_usage")
        except OSError:
            return []
        found = [
            (
                count_or_moment(member(use, "ts")),
                text_of(member(use, "model_id")) or "unknown",
                text_of(member(use, "model_provider_id")),
            )
            for use in (told if isinstance(told, list) else [])
        ]
        return sorted(found, key=lambda use: use[0])

    def _call(
        self, number: int, message: object, models: list[tuple[int, str, str | None]]
    ) -> TranscriptCall | None:
        if member(message, "say") != "api_req_started":
            return None
        told = _object(member(message, "text"))
        reason = text_of(told.get("cancelReason"))
        tokens = self._tokens(told)
        if not tokens and reason is None:
            return None
        at = count_or_moment(member(message, "ts"))
        used = [use for use in models if use[0] <= at] or models[:1]
        task = self._path.parent.name
        return TranscriptCall(
            origin=Origin(self._path, number),
            client=self._extension.client,
            id=f"{self._extension.client}:{task}:{at}",
            conversation=f"{self._extension.client}:{task}",
            model=text_of(member(message, "modelInfo", "modelId"))
            or (used[-1][1] if used else "unknown"),
            provider=text_of(member(message, "modelInfo", "providerId"))
            or (used[-1][2] if used else None),
            started_at=moment_of(member(message, "ts")),
            tokens=tokens,
            status=_ENDED.get(reason, "error") if reason else None,
            error_code=reason,
            error_message=text_of(told.get("streamingFailedMessage")),
        )

    def _tokens(self, told: dict[str, Any]) -> Tokens:
        prompt = count_of(told.get("tokensIn"))
        read, written = count_of(told.get("cacheReads")), count_of(told.get("cacheWrites"))
        if self._extension.adds_cache:
            prompt = sum_of(prompt, read, written)
        return Tokens(
            prompt=prompt,
            completion=count_of(told.get("tokensOut")),
            cached=read,
            cache_write=written,
        )


def _compaction(message: object) -> Compaction | None:
    say = member(message, "say")
    if say == "compaction":
        told = _object(member(message, "text"))
        before, after = told.get("tokensBefore"), told.get("tokensAfter")
    elif say == "condense_context":
        told = member(message, "contextCondense")
        before, after = member(told, "prevContextTokens"), member(told, "newContextTokens")
    else:
        return None
    return Compaction(before_tokens=count_of(before), after_tokens=count_of(after))


def _object(text: object) -> dict[str, Any]:
    """The object that a message's text is; empty where it is none."""
    try:
        value = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def count_or_moment(value: object) -> int:
    """Milliseconds since 1970 as they are written; 0 where they are not."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
