"""A conversation of few words, known again by the id of a tool call: rule "called-tool-2".

Some libraries send a reply back otherwise than it came: its text without the call, or the call
without the text. What they keep is the id that the provider gave the call, for its result has to
name it. So a conversation's first call leaves the id, and the next request finds it where nothing
else is known of what it sends.

Some agents write their first message anew when they go on with a session (Qwen Code 0.24.4). What
they keep is the newest replies, and where these are too short to tell by themselves ("ok"), the
last tool call before them has an id: so each call leaves that id with all replies since
(core.conversations.fingerprints).

It counts only if the conversation's newest call left it and no other conversation did; ids that are
no accident (`call_0_look`, which HelmDash makes for formats without any) are none.
"""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import blake2b

CALLED_TOOL_VERSION = "called-tool-2"
# As in core.conversations.fingerprints: no two ids meet by accident.
_DIGEST_BYTES = 16
# At most so many ids of one reply are looked for: libraries put parallel calls in any order.
MOST_CALLS = 4
# OpenAI's ids have 24 letters and digits after `call_`, Anthropic's as many after `toolu_`, vLLM's
# and others' 32; those of Mistral have nine, too few to be sure.
_RANDOM = re.compile(r"(?=[A-Za-z]*\d|[a-z]*[A-Z]+[a-z])[A-Za-z0-9]{12,}|[0-9a-fA-F-]{36}")
# smolagents 1.26.0 writes a call into its reply's text, and its result into the user's next one.
_WRITTEN_CALLS, WRITTEN_RESULT = "Calling tools:", "Observation:"
# What is read of such a text stays cheap.
_READ_CHARS = 16_000
_WRITTEN_CALL = re.compile(r"\{'id': '([^'\s]{1,200})', 'type': 'function'")


def written_calls(text: str) -> list[str]:
    """The ids of tool calls that a library has written into the text of a reply.

    >>> written_calls("Calling tools:\\n[{'id': 'call_1', 'type': 'function', 'function': {}}]")
    ['call_1']
    """
    if not text.startswith(_WRITTEN_CALLS):
        return []
    return _WRITTEN_CALL.findall(text[:_READ_CHARS])


def call_fingerprint(call_id: str, tool: str) -> str:
    """What is kept of a tool call's id; "" for one that another call could have as well."""
    if len(call_id) + len(tool) > _REMEMBERED_CHARS:
        return _fingerprint(call_id, tool)
    return _remembered(call_id, tool)


def _fingerprint(call_id: str, tool: str) -> str:
    if (tool and tool in call_id) or _RANDOM.search(call_id) is None:
        return ""
    digest = blake2b(call_id.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES)
    return "c" + digest.hexdigest()


# An agent sends the ids of its newest calls with every request. A longer one is a stranger's, or
# holds more than an id.
_REMEMBERED_CHARS = 256
_remembered = lru_cache(maxsize=4096)(_fingerprint)
