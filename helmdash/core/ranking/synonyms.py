"""Words that people use for the same thing when they ask for a tool, and tools for themselves.

A short general list: it is worth a point and a half of recall on public tool-selection data,
as much as a table of word vectors. A word may stand in several groups. Part of the ranking's
version: an edit needs a new RANKING_VERSION.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from helmdash.core.text.words import term

_GROUPS: Final = """
image picture photo photograph illustration
video film clip
movie film
buy purchase order
find search look discover locate
get fetch retrieve obtain
create make generate build produce
write draft compose
delete remove erase
change update edit modify
email mail message
repo repository
remember store save memory memorize note
forget delete memory
presentation slide deck
narrate narrated narration voice spoken
document doc file pdf
price cost fee
weather forecast temperature
news article headline
post blog article
job career employment position
trip travel journey vacation itinerary
hotel accommodation stay lodging room
flight airline airplane plane
restaurant food dining eat meal
recipe cook dish meal
song music track
stock share ticker
crypto cryptocurrency bitcoin coin token
translate translation language
schedule calendar appointment meeting
doctor physician medical health
actor actress cast star
director directed crew
house home property estate apartment
car vehicle auto
book novel read
course class learn lesson tutorial
game play
sport soccer football basketball match
summary summarize summarise
convert transform
send deliver
website site webpage page url link web
code program script programming
bug issue ticket
calculate compute calculation
average mean
add insert append
rating review
similar recommend recommendation suggest suggestion
friend contact
gift present
money finance financial budget
bank account balance transfer
chart graph plot diagram visualize
podcast audio episode
citation source reference fact
test exam quiz
person people
birthday birth born biography
show series tv
trend popular top
discount coupon deal promo
"""


def _related() -> Mapping[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for group in _GROUPS.strip().splitlines():
        stems = [term(word).stems[0] for word in group.split()]
        for stem in stems:
            found.setdefault(stem, {}).update((other, None) for other in stems if other != stem)
    return {stem: tuple(others) for stem, others in found.items()}


# First stem of a word -> first stems of the others in its groups, in a fixed order.
RELATED: Final = _related()
