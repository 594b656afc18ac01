"""How far a measured share can be trusted: Wilson's interval.

Wilson's holds where the textbook interval does not: for a handful of calls, and for shares of none
or all.
"""

from __future__ import annotations

import math
from typing import Final

# 95 %: the two-sided quantile of the normal distribution.
_Z: Final = 1.959963984540054


def wilson(successes: float, n: float) -> tuple[float, float] | None:
    """The 95 % interval of a share, both ends within 0 and 1; None where nothing was counted.

    Raises ValueError for a count that is not within 0 and n.
    """
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} of {n} is no share")
    if n == 0:
        return None
    share = successes / n
    spread = _Z * _Z / n
    middle = share + spread / 2
    half = _Z * math.sqrt(share * (1 - share) / n + spread / (4 * n))
    # Rounding must not move an end beyond what was measured, nor past none and all.
    low = min(max((middle - half) / (1 + spread), 0.0), share)
    high = max(min((middle + half) / (1 + spread), 1.0), share)
    return low, high
