"""Every agent whose transcripts can be read, by the name that `--from` takes."""

from __future__ import annotations

from collections.abc import Sequence

from helmdash.transcripts.claude.reader import ClaudeReader
from helmdash.transcripts.cline.reader import ClineReader
from helmdash.transcripts.codex.reader import CodexReader
from helmdash.transcripts.gemini.reader import GeminiReader
from helmdash.transcripts.opencode.reader import OpencodeReader
from helmdash.transcripts.pi.reader import PiReader
from helmdash.transcripts.qwen.reader import QwenReader
from helmdash.transcripts.reading import AgentReader

READERS = (
    ClaudeReader,
    CodexReader,
    GeminiReader,
    OpencodeReader,
    PiReader,
    ClineReader,
    QwenReader,
)
NAMES = tuple(reader.name for reader in READERS)


def readers_of(names: Sequence[str] = ()) -> list[AgentReader]:
    """Fresh readers of these agents; of all where none is named.

    Raises ValueError with a sentence where a name is unknown.
    """
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        raise ValueError(f"No reader of {', '.join(unknown)}; there are: {', '.join(NAMES)}.")
    return [reader() for reader in READERS if not names or reader.name in names]
