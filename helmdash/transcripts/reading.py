"""What a reader of one agent's transcripts is, and what readers share: lines of files that grow.

An agent's reader finds the files and opens each as a `FileReader`, which gives the calls that came
since it was last asked. A file that is written anew, or was cut, is read from its beginning again:
calls have stable ids, so nothing is counted twice.
"""

from __future__ import annotations

import json
import os
import stat
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from helmdash.transcripts.calls import Origin, TranscriptCall

# A line with an image may have some megabytes; what is longer is no line of a transcript.
MAX_LINE_BYTES = 64 * 1024 * 1024
# A document that is read whole, such as a task of Cline's.
MAX_DOCUMENT_BYTES = 64 * 1024 * 1024
# A response is complete when its file has been quiet for so long.
QUIET_SECONDS = 1.0
# What a line or a document may hold: each value is an object of some 80 bytes, and 20 million of
# the shortest fit into a line. The longest real ones are texts and images: few values.
_MOST_VALUES = 1_000_000


@dataclass
class Home:
    """Where the user's files lie. `system` is linux, darwin or win32; `variables` the environment,
    empty where another home than the user's own is read."""

    path: Path
    system: str
    variables: dict[str, str] = field(default_factory=dict)

    def configured(self, variable: str, *default: str) -> Path:
        """The place that a variable names, else the one below the home."""
        named = self.variables.get(variable)
        return Path(named).expanduser() if named else self.path.joinpath(*default)

    def data(self, *names: str) -> Path:
        """Below the place for programs' data, as XDG has it on every system."""
        return self.configured("XDG_DATA_HOME", ".local", "share").joinpath(*names)

    def settings(self, *names: str) -> Path:
        """Below the place for programs' settings: the platform's own."""
        if self.system == "darwin":
            return self.path.joinpath("Library", "Application Support", *names)
        if self.system == "win32":
            return self.configured("APPDATA", "AppData", "Roaming").joinpath(*names)
        return self.configured("XDG_CONFIG_HOME", ".config").joinpath(*names)


class FileReader(Protocol):
    """One file, read on and on. `left_out` counts what is no call, by reason."""

    left_out: Counter[str]

    @property
    def done_bytes(self) -> int:
        """How much of the file has been read; 0 where it is read as a whole."""

    @property
    def quiet_seconds(self) -> float:
        """How long the file has to be as it is until nothing more is expected of its newest
        response."""

    def read(self, *, is_final: bool) -> Iterator[TranscriptCall]:
        """The calls since the last time. is_final: nothing more is expected now, so that what may
        still change is given as it stands.

        Raises OSError where the file cannot be read.
        """


class AgentReader(Protocol):
    """The transcripts of one agent."""

    name: str

    def files(self, home: Home) -> Iterator[Path]:
        """Those there are, those first that others are copied from."""

    def open(self, path: Path) -> FileReader:
        """A reader of one of them."""


class Lines:
    """The complete lines of a file that may still be written to, as objects."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.number = 0
        self.unreadable = 0
        self.offset = 0
        self._identity: tuple[int, int] | None = None

    def read(self, *, is_final: bool) -> Iterator[tuple[int, dict[str, Any]]]:
        """Those since the last time, with their numbers. A line without an end is half written: it
        is left for the next time, unless nothing more is expected and it is a whole object.

        Raises OSError.
        """
        with open_regular(self.path) as stream:
            state = os.fstat(stream.fileno())
            identity = (state.st_dev, state.st_ino)
            if identity != self._identity or state.st_size < self.offset:
                self._identity, self.offset, self.number = identity, 0, 0
            stream.seek(self.offset)
            while True:
                line = stream.readline(MAX_LINE_BYTES + 1)
                if not line:
                    return
                if len(line) > MAX_LINE_BYTES and not line.endswith(b"\n"):
                    while line and not line.endswith(b"\n"):
                        line = stream.readline(MAX_LINE_BYTES)
                    line = b"too long\n"
                value = parse_object(line)
                if not line.endswith(b"\n") and not (is_final and value is not None):
                    return
                self.offset = stream.tell()
                self.number += 1
                if value is not None:
                    yield self.number, value
                elif line.strip():
                    self.unreadable += 1

    def origin(self, number: int) -> Origin:
        """Where the line stands."""
        return Origin(self.path, number)


class LinesFile:
    """What readers of lines have in common."""

    def __init__(self, path: Path) -> None:
        self.left_out: Counter[str] = Counter()
        self._lines = Lines(path)

    @property
    def done_bytes(self) -> int:
        """See FileReader."""
        return self._lines.offset

    @property
    def quiet_seconds(self) -> float:
        """See FileReader."""
        return QUIET_SECONDS


class WholeFile:
    """What readers of whole documents have in common."""

    done_bytes = 0
    quiet_seconds = QUIET_SECONDS

    def __init__(self, path: Path) -> None:
        self.left_out: Counter[str] = Counter()
        self._path = path


def open_regular(path: Path) -> Any:
    """The file, open for reading bytes; no link is followed, and nothing that may hang is opened.

    Raises OSError.
    """
    state = os.lstat(path)
    if not stat.S_ISREG(state.st_mode):
        raise OSError(f"{path} is no regular file")
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    return os.fdopen(os.open(path, flags), "rb")


def parse_object(line: bytes) -> dict[str, Any] | None:
    """The JSON object of a line; None where it holds none, or one that nests too deeply or has too
    many values."""
    value = _parse(line)
    return value if isinstance(value, dict) else None


def _parse(text: bytes) -> Any:
    # Each value but the first has a comma or a bracket before it.
    if len(text) > _MOST_VALUES and sum(map(text.count, (b",", b"[", b"{"))) > _MOST_VALUES:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def read_document(path: Path) -> Any:
    """The JSON of a whole file; None where it holds none, as while it is written.

    Raises OSError, also where the file is too large to be one.
    """
    with open_regular(path) as stream:
        if os.fstat(stream.fileno()).st_size > MAX_DOCUMENT_BYTES:
            raise OSError(f"{path} is larger than {MAX_DOCUMENT_BYTES} bytes")
        return _parse(stream.read())


def walk(root: Path, *suffixes: str) -> list[Path]:
    """The regular files below a place, with one of these suffixes, in order; links are not
    followed. Empty where the place is missing or not to be read."""
    found: list[Path] = []
    if root.is_symlink():
        return found
    for folder, folders, names in os.walk(root, followlinks=False):
        folders.sort()
        for name in sorted(names):
            path = Path(folder, name)
            if name.endswith(suffixes) and not path.is_symlink():
                found.append(path)
    return found
