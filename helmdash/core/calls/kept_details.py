"""What stays of a verdict's sentence once the texts of its call are gone.

A sentence quotes what the provider said, which may quote the prompt. Its rule says where: all that
the rule itself says stays, and of the error its status and a code that tells nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from helmdash.core.calls.failures import RULES
from helmdash.core.calls.withheld import kept_code

_ERROR: Final = "{error}"
_GONE: Final = "its words are no longer kept"
_TEMPLATES: Final[Mapping[str, str]] = {rule.id: rule.detail for rule in RULES}


def kept_detail(detail: str, *, rule: str, http_status: int | None, error_code: str) -> str:
    """The sentence without the provider's words. rule: the id of the rule that made it.

    A sentence of an older rule, or one that was masked where the rule speaks, is cut at its first
    bracket.
    """
    before, mark, after = _TEMPLATES.get(rule, _ERROR).partition(_ERROR)
    if not mark:
        return detail
    said = re.match(_as_pattern(before), detail, re.S) if before else None
    if said is None:
        head, bracket, _ = detail.partition(" (")
        return f"{head}." if bracket else detail
    status = f"HTTP {http_status}" if http_status is not None else ""
    code = kept_code(error_code, ()) if error_code else ""
    told = ", ".join(part for part in (status, code, _GONE) if part)
    return f"{said[0]}{told}{after}"


def _as_pattern(template: str) -> str:
    """A template as what matches its sentences: a field is any text."""
    return re.sub(r"\\\{\w+\\\}", ".*?", re.escape(template))
