"""Tables by the members of an enum: none misses a new member in silence.

Where the code decides by a member it matches, and mypy names the match that does not know one.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from enum import Enum

import helmdash

# Importing it sets a server up.
_SERVER = "helmdash.asgi"
# Tables that are searched, or asked with an answer for the rest.
PARTIAL = {
    "helmdash.core.alerts.channels._SHAPES": "an e-mail is no request",
    "helmdash.core.calls.error_words._WORDING": "kinds that are known by a code alone",
    "helmdash.core.calls.error_words._WORDINGS": "as above",
    "helmdash.core.calls.finish._WORDS": "any other word is OTHER",
    "helmdash.core.fitting.receipt._LABELS": "a step that is told otherwise",
    "helmdash.core.text.query_terms._HOW": "words and texts are no numbers",
    "helmdash.core.text.query_terms._UNITS": "as above",
    "helmdash.core.truncation.sentences._ADVICE": "one advice for the rest",
    "helmdash.pages.parts.budgets.figure_sources._CAUTION": "else it is the row's",
    "helmdash.pages.parts.budgets.figure_sources._CRITICAL": "else it is the row's",
    "helmdash.pages.templatetags.differences._ELEMENTS": "what stayed bears no mark",
    "helmdash.providers.anthropic.errors._TYPE_OF_KIND": "api_error for the rest",
    "helmdash.providers.anthropic.tools._CHOICE_WORDS": "ONE names its tool",
    "helmdash.usage_metrics._UNITS": "estimate ratios are no metric",
    "helmdash.queries.alerts.previewing._READERS": "lags are read by what was noted of them",
}


def tables() -> Iterator[tuple[str, Mapping[Enum, object]]]:
    """Each table of our modules by its full name."""
    for found in pkgutil.walk_packages(helmdash.__path__, "helmdash."):
        if found.name == _SERVER or ".migrations." in found.name:
            continue
        for name, value in vars(importlib.import_module(found.name)).items():
            if isinstance(value, Mapping) and value and all(isinstance(k, Enum) for k in value):
                yield f"{found.name}.{name}", value


def test_a_table_by_an_enum_has_every_member_or_says_why_not() -> None:
    lacking = {name for name, table in tables() if {*type(next(iter(table)))} - table.keys()}

    assert lacking == PARTIAL.keys()
