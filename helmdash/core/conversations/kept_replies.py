"""A request that goes on from a reply which its provider keeps: rule "kept-reply-1".

It names the reply by its id and sends only what is new (OpenAI's `previous_response_id`), so that
its messages tell nothing of what was said before. Each call leaves the id of its reply as a
fingerprint; one that got none leaves that of the reply it went on from, for it is tried again from
there. From the newest the conversation goes on; from an older one it branches off. As everywhere
in `core.conversations`, nobody finds what another project or caller has left.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from helmdash.core.conversations.chains import ChainPlace, Placing, Seen

KEPT_REPLY_VERSION = "kept-reply-1"
# As in core.conversations.fingerprints: no two ids meet by accident.
_DIGEST_BYTES = 16


def reply_fingerprint(reply_id: str) -> str:
    """What is kept of a reply's id; "" for none."""
    if not reply_id:
        return ""
    digest = blake2b(reply_id.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES)
    return "i" + digest.hexdigest()


def place_after(seen: Sequence[Seen]) -> ChainPlace:
    """Where a call belongs that goes on from a reply which these calls left; at least one."""
    found = next((one for one in seen if one.is_tip), seen[0])
    return ChainPlace(
        placing=Placing.CONTINUE if found.is_tip else Placing.BRANCH,
        conversation=found.conversation,
        generation=found.generation,
    )
