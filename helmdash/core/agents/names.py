"""Conversations by the names that agents give their sessions, as HelmDash can carry them.

The same functions for every door: what a gateway sees in a header, a transcript has in a file and
OTLP in an attribute, and all three have to come to one name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from hashlib import blake2b

from helmdash.core.calls.capture import CONVERSATION_CHARS

# What a path carries unescaped, but for "=", with which the rest is written.
_PLAIN = re.compile(r"[A-Za-z0-9._:@+-]+", re.A)
# Longer than any name; what is read of a stranger's header stays cheap.
_READ_CHARS = 4096
# Enough that two names cannot be taken for one.
_DIGEST_BYTES = 16
_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_OLD_USER_ID = re.compile(rf"user_[^/\s]*_session_({_UUID})")


def foreign_name(text: str) -> str | None:
    """A session's own id as the name of a conversation; None for one that says nothing.

    Different ids keep different names: what a name cannot hold is written as `=` and its bytes in
    hexadecimals, and one that is too long ends in a hash of the whole.

    >>> foreign_name("01a2-b3"), foreign_name("my chat/1")
    ('01a2-b3', 'my=20chat=2F1')
    """
    text = text.strip()[:_READ_CHARS]
    if not text:
        return None
    name = text if _PLAIN.fullmatch(text) else "".join(map(_escaped, text))
    if not name.strip("."):
        name = f"=2E{name[1:]}"  # no link leads to a name of dots
    if len(name) <= CONVERSATION_CHARS:
        return name
    digest = blake2b(text.encode("utf-8", "replace"), digest_size=_DIGEST_BYTES).hexdigest()
    # "=" and what is no byte after it: no shorter name ends so.
    return f"{name[: CONVERSATION_CHARS - len(digest) - 2]}=_{digest}"


def agent_name(session: str, agent: str | None) -> str | None:
    """A sub-agent's conversation: `<session>:<agent>`; the session's own where agent is None."""
    return foreign_name(f"{session}:{agent}" if agent else session)


def claude_session(user_id: object) -> str | None:
    """The session in Claude Code's `metadata.user_id`: a JSON text with `session_id`, or as older
    versions wrote it, `user_…_account_…_session_<uuid>`; None for anything else."""
    if not isinstance(user_id, str) or len(user_id) > _READ_CHARS:
        return None
    old = _OLD_USER_ID.fullmatch(user_id)
    if old is not None:
        return old[1]
    told = read_object(user_id)
    session = told.get("session_id")
    return session if isinstance(session, str) and session.strip() else None


def read_object(text: str) -> Mapping[str, object]:
    """The JSON object of a header's value; empty for anything else."""
    if not text.startswith("{") or len(text) > 16 * _READ_CHARS:
        return {}
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


def _escaped(char: str) -> str:
    if _PLAIN.fullmatch(char):
        return char
    return "".join(f"={byte:02X}" for byte in char.encode("utf-8", "replace"))
