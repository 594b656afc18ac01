"""What the blocks of agents are filled in with."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from helmdash.pages.parts.client_snippets import Snippet
from helmdash.pages.parts.snippets import KEY_VARIABLE

# In files: the reader puts a key in its place.
_BLANK_KEY = "hd_YOUR_KEY"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """What the blocks are filled in with.

    base: this server's address. key: one of its keys; None: its reader has one, in the variable
    HELMDASH_API_KEY. model: as `provider/model`; "": the one that the client takes by itself, where
    `Agent.vendor` allows that. window: tokens; compacts_at: tokens above which a conversation is
    critical; output_tokens: of one reply. None: not known.
    """

    base: str
    key: str | None
    model: str
    window: int | None = None
    compacts_at: int | None = None
    output_tokens: int | None = None

    @property
    def shell_key(self) -> str:
        """The key as a shell takes it."""
        return shlex.quote(self.key) if self.key else f'"${KEY_VARIABLE}"'

    @property
    def file_key(self) -> str:
        """The key as a file takes it, in which no variable is looked up."""
        return self.key or _BLANK_KEY


def exports(name: str, command: str, wiring: Wiring, **variables: str) -> Snippet:
    """A block for a shell: variables, then the command that runs the agent."""
    text = f"{exported(variables, wiring)}{command}\n"
    return Snippet(f"{name}-shell", "In a shell", text)


def exported(variables: Mapping[str, str], wiring: Wiring) -> str:
    """The variables of a program, for a shell; empty values stay empty."""
    lines = []
    for name, value in variables.items():
        word = wiring.shell_key if value == wiring.file_key else shlex.quote(value)
        lines.append(f"export {name}={word if value else ''}\n")
    return "".join(lines)
