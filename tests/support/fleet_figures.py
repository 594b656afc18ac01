"""Servers that cut prompts, and models that count tokens: how far off is what is learned?"""

from __future__ import annotations

from collections import Counter
from random import Random

from helmdash.core.evidence.estimator import find_ratios
from helmdash.core.evidence.hard_window import find_plateau
from helmdash.core.rollups.buckets import bucket_of
from helmdash.core.rollups.evidence_facts import ratio_of

_WINDOWS = (2_048, 4_096, 8_000, 8_192, 16_384, 24_576, 32_000, 32_768, 65_536, 131_072, 200_000)


def plateau_error(random: Random) -> float:
    """How far off, as a share, the window is that five to sixty cut prompts show; 1: none shown."""
    window = random.choice(_WINDOWS)
    cuts: Counter[int] = Counter()
    kind = random.choice(["whole", "half", "dropped"])
    for _ in range(random.randint(5, 60)):
        if kind == "whole":
            cuts[window] += 1
        elif kind == "half" and window in (2_048, 4_096, 8_192, 16_384, 32_768, 65_536, 131_072):
            cuts[window // 2 + random.randint(1, 6)] += 1
        else:
            # Whole messages of some hundred tokens go until the rest fits.
            cuts[window - random.randint(0, max(window // 60, 20))] += 1
    found = find_plateau(cuts, longest_whole=int(window * random.uniform(0.3, 0.99)))
    return 1.0 if found.tokens is None else abs(found.tokens / window - 1)


def estimator_error(random: Random) -> float:
    """The median error of estimates of later prompts, by what 300 earlier ones show.

    Each conversation has bytes a token of its own, as prose, code and tables have.
    """
    middle, template = random.uniform(2.2, 5.5), random.randint(0, 20)

    def prompts(n: int) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        while len(found) < n:
            ratio = middle * random.lognormvariate(0, 0.06)
            for _ in range(random.randint(1, 12)):
                tokens = int(2 ** random.gauss(12, 1.5)) + 100
                size = int(tokens * ratio * random.lognormvariate(0, 0.02))
                found.append((size, tokens + template))
        return found

    counts: Counter[int] = Counter()
    for size, tokens in prompts(300):
        ratio = ratio_of(size, tokens)
        if ratio is not None:
            counts[bucket_of(ratio)] += 1
    learned = find_ratios(counts, today=4.0).bytes_per_token
    assert learned is not None
    later = sorted(abs(size / learned / tokens - 1) for size, tokens in prompts(300))
    return later[len(later) // 2]
