"""Simulated trials whose truth is known: conversations of many lengths, whose calls go well or
badly together, and times at which nothing goes well."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from helmdash.core.evidence.trialling import ArmFigures, is_clearly_worse

# Conversations that are going on at once, and calls between two looks of the job.
_OPEN = 12
_CALLS_A_LOOK = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialFleet:
    """What is the same in both arms, and how much worse the suggested budget is (of one).

    alike: how much calls of a conversation are alike, as the correlation of two of them.
    """

    conversations: int
    share: float
    rate: float
    harm: float
    alike: float
    length: float
    spread: float
    outages: int


@dataclass(frozen=True, slots=True)
class Ended:
    """After how many conversations a trial was over, and whether it was stopped as harmful."""

    conversations: int
    is_stopped: bool
    arms: tuple[ArmFigures, ArmFigures]


def fleet(
    random: Random, *, harm: float, conversations: int = 300, share: float = 0.2
) -> TrialFleet:
    """One of many: good and bad models, short and long conversations."""
    return TrialFleet(
        conversations=conversations,
        share=share,
        rate=random.choice((0.6, 0.8, 0.9, 0.95, 0.98)),
        harm=harm,
        alike=random.choice((0.02, 0.1, 0.3)),
        length=random.choice((1.0, 4.0, 10.0)),
        spread=random.choice((0.3, 0.8, 1.2)),
        outages=random.choice((0, 0, 1, 2)),
    )


def run(random: Random, what: TrialFleet) -> Ended:
    """Carry a trial out, with a look each so many calls, as the job does."""
    arms: list[_Arm] = [_Arm(), _Arm()]
    made = 0
    for calls, (is_suggested, unit, is_clean) in enumerate(_calls(random, what), 1):
        made = max(made, unit + 1)
        arms[is_suggested].take(unit, is_clean=is_clean)
        if calls % _CALLS_A_LOOK == 0:
            today, suggested = (each.figures for each in arms)
            if is_clearly_worse(today, suggested):
                return Ended(made, True, (today, suggested))
    today, suggested = (each.figures for each in arms)
    return Ended(made, is_clearly_worse(today, suggested), (today, suggested))


class _Arm:
    """The sums of one arm, kept up to date call by call."""

    def __init__(self) -> None:
        self._units: dict[int, tuple[int, int]] = {}
        self._sums = [0] * 5

    def take(self, unit: int, *, is_clean: bool) -> None:
        n, c = self._units.get(unit, (0, 0))
        more, better = n + 1, c + is_clean
        self._units[unit] = more, better
        changes = (1, is_clean, more**2 - n**2, better**2 - c**2, more * better - n * c)
        self._sums = [so_far + each for so_far, each in zip(self._sums, changes, strict=True)]

    @property
    def figures(self) -> ArmFigures:
        calls, clean, calls_squared, clean_squared, product = self._sums
        return ArmFigures(
            conversations=len(self._units),
            calls=calls,
            clean=clean,
            calls_squared=calls_squared,
            clean_squared=clean_squared,
            product=product,
        )


def _calls(random: Random, what: TrialFleet) -> Iterator[tuple[bool, int, bool]]:
    """In the order of time: whether it is of the suggested arm, its conversation, and whether it is
    clean. Some conversations go on at once; one that ends makes room for the next."""
    outages = [random.random() for _ in range(what.outages)]
    going: list[tuple[int, bool, float, int]] = []
    begun = 0
    while going or begun < what.conversations:
        while len(going) < _OPEN and begun < what.conversations:
            is_suggested = random.random() < what.share
            rate = min(max(what.rate - what.harm * is_suggested, 0.001), 0.999)
            lasts = max(1, round(what.length * random.lognormvariate(0, what.spread)))
            going.append((begun, is_suggested, _of_its_own(random, rate, what.alike), lasts))
            begun += 1
        place = random.randrange(len(going))
        unit, is_suggested, own, left = going[place]
        is_out = any(0 <= begun / what.conversations - at < 0.03 for at in outages)
        yield is_suggested, unit, random.random() < (0.1 if is_out else own)
        if left == 1:
            going.pop(place)
        else:
            going[place] = (unit, is_suggested, own, left - 1)


def _of_its_own(random: Random, rate: float, alike: float) -> float:
    """How clean one conversation's calls are: a beta distribution about the rate."""
    strength = 1 / alike - 1
    return random.betavariate(rate * strength, (1 - rate) * strength)
