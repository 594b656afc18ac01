"""Bands of sizes for learning: two to each power of two, so that a band is 1.5 or 1.33 times wide.

Fine enough that a limit found between two of them is no more than one of the usual powers of two
off, and few enough that a few hundred calls fill them. Numbers, not labels: band 2k begins at 2^k,
band 2k + 1 at 1.5 * 2^k.

Calls are counted by slices, four equal ones to each band: whether clean answers fall at one size or
little by little is told by where in its band a call lies, too (docs/evidence.md).
"""

from __future__ import annotations

from typing import Final

# To each power of two.
SLICES: Final = 8
_OF_BAND: Final = 4


def size_band(size: int) -> int:
    """The band of a size (tokens or bytes, 0 or more). 0 and 1 share the first."""
    power = max(size, 1).bit_length() - 1
    # The bit below the highest one tells which half it is.
    upper = power > 0 and size >> (power - 1) & 1
    return 2 * power + bool(upper)


def band_start(band: int) -> int:
    """The least size of a band."""
    power, upper = divmod(band, 2)
    return (1 << power) + ((1 << power) >> 1 if upper else 0)


def band_end(band: int) -> int:
    """The largest size of a band."""
    return band_start(band + 1) - 1


def size_slice(size: int) -> int:
    """The slice of a size (tokens or bytes, 0 or more): slice 8k begins at 2^k."""
    whole = max(size, 1)
    power = whole.bit_length() - 1
    return SLICES * power + ((whole * SLICES) >> power) - SLICES


def band_of_slice(number: int) -> int:
    """The band that a slice is a part of."""
    return number // _OF_BAND


def middle_slice(band: int) -> int:
    """The slice that stands for a band of which no more is known."""
    return band * _OF_BAND + _OF_BAND // 2
