"""Finding an answer that may come in better and worse shapes in one reply.

A model may write an empty answer first and mean the next one, or give an example of a part beside
the whole: the best shape that a reply holds counts, wherever it stands.
"""

from __future__ import annotations

from collections.abc import Sequence

from helmdash.core.calls.finish import FinishReason
from helmdash.core.decoding.decoding import Accepts, Decoded, Undecodable, decode


def decode_best(
    raw: str, shapes: Sequence[Accepts], *, finish_reason: FinishReason | None, label: str
) -> Decoded:
    """Find a value of the first of the shapes that the reply holds any of; at most two readings.

    finish_reason None: none was given, so the reply is not taken for cut off. `label` names the
    task in the message. Raises Undecodable where it holds none.
    """
    seen: set[int] = set()

    def is_best(value: object) -> bool:
        fitting = next((at for at, fits in enumerate(shapes) if fits(value)), None)
        if fitting is not None:
            seen.add(fitting)
        return fitting == 0

    try:
        return decode(raw, finish_reason=finish_reason, accepts=is_best, label=label)
    except Undecodable:
        if not seen:
            raise
    return decode(raw, finish_reason=finish_reason, accepts=shapes[min(seen)], label=label)
