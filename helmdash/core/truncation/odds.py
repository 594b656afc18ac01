"""Cut, or counted only what is new? How likely a count is under either.

A server that reuses the state of a prompt may report only the tokens it evaluated anew. Such a
count follows what was added since the call before, and knows no maximum. What a cut leaves lies
between half of a window and all of it, whatever was added. One call seldom tells the two apart;
several do. Likelihoods are densities of the logarithm of the count.
"""

from __future__ import annotations

from math import exp, log, pi, sqrt

# Nothing is impossible: content changes, and caches are lost.
_LEAST = 0.02


def likelihood_of_new(added: float) -> float:
    """Logarithm of the likelihood of a count of new tokens.

    added: logarithm of the bytes added for each token counted, over the bytes a token usually has.
    Mostly near 0; above where a reply that was added lies in the cache already.
    """
    near = 0.5 * _normal(added - 0.05, 0.15) + 0.35 * _normal(added - 0.4, 0.4)
    return log(near + (_LEAST if abs(added) > 1.4 else 0.06))


def likelihood_of_cut(below: float) -> float:
    """Logarithm of the likelihood of a count that a cut has left.

    below: logarithm of the largest count so far over this one. From the window down to its half,
    most of them near the top; above only until the largest is met.
    """
    if below < 0:
        return log(0.25 if below > -0.7 else _LEAST)
    if below > 0.76:
        return log(_LEAST)
    return log(0.6 * exp(-below / 0.1) / 0.1 + 0.5)


def _normal(value: float, sigma: float) -> float:
    return exp(-((value / sigma) ** 2) / 2) / (sigma * sqrt(2 * pi))
