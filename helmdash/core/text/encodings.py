"""How bytes that should be UTF-8 are written instead, for whoever has sent or uploaded them."""

from __future__ import annotations

import codecs


def encoding_fault(content: bytes) -> str | None:
    """Why bytes are not UTF-8, as a clause about what they are of; None where they are.

    A byte order mark of UTF-8's own is no fault here.
    """
    # No text begins with U+0000; of its first two bytes in UTF-16 or UTF-32 one or both are zero,
    # or they are the mark.
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in content[:2]:
        return "it is in UTF-16 or UTF-32"
    try:
        content.decode()
    except UnicodeDecodeError as error:
        return f"it is not UTF-8, byte {error.start + 1} is none"
    return None
