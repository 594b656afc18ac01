"""Bands of sizes for learning: two to each power of two, so that a band is 1.5 or 1.33 times wide.

Fine enough that a limit found between two of them is no more than one of the usual powers of two
off, and few enough that a few hundred calls fill them. Numbers, not labels: band 2k begins at 2^k,
band 2k + 1 at 1.5 * 2^k.
"""

from __future__ import annotations


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
