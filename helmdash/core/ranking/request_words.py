"""Words that people use whatever they ask for: a short history cannot know how common they are.

Part of the ranking's version: an edit needs a new RANKING_VERSION.
"""

from __future__ import annotations

from typing import Final

from helmdash.core.text.words import term

_WORDS: Final = """
able additionally assist available best check could create detail different discover ensure
explore fetch find first following generate get give good great hear help helpful idea include
including info information interested interesting know last latest learn let like list look
looking main make many multiple name new next number one open option order perform possible
prepare provide random read recent recently recommend recommendation request result retrieve
search second see send share show similar specific start suggest suggestion sure take tell thing
time today tomorrow top try two understand upcoming update use using various wanted way wondering
work world yesterday
day week weekend month year plan planning organize family friend people
"""

COMMON_STEMS: Final = frozenset(stem for word in _WORDS.split() for stem in term(word).stems)
