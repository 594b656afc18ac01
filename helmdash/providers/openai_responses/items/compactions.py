"""Compactions: what stands for a part of a history in an item that clients hand back unread.

OpenAI's are sealed, and nobody else can read them. Ours hold the summary itself, so that any model
can go on from it.
"""

from __future__ import annotations

import base64
import binascii

from helmdash.providers.shared.reported import text_in
from helmdash.providers.wire import Object

KINDS = frozenset({"compaction", "compaction_summary", "context_compaction"})
_OURS = "helmdash-summary-1:"


def written_summary(text: str) -> str:
    """The `encrypted_content` of a compaction that any upstream of ours can go on from."""
    return _OURS + base64.b64encode(text.encode("utf-8", "replace")).decode()


def summary_in(item: Object) -> str | None:
    """The summary in a compaction of ours; None for one of another's."""
    content = text_in(item, "encrypted_content") or ""
    if not content.startswith(_OURS):
        return None
    try:
        return base64.b64decode(content.removeprefix(_OURS), validate=True).decode()
    except (binascii.Error, ValueError):
        return None
