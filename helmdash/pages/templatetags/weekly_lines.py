"""The weekly report in lines of plain text, for mails: nothing in them is anybody's markup."""

from __future__ import annotations

import re

from django import template

from helmdash.pages.parts import weekly
from helmdash.queries.weekly import WeeklyReport

register = template.Library()

_ESCAPED = re.compile(r"\\([\\`*_\[\]<>#|])")


@register.simple_tag
def week_parts(report: WeeklyReport) -> list[tuple[str, list[str]]]:
    """Headings and the lines under each."""
    return [
        (heading, [one_line(_ESCAPED.sub(r"\1", line)) for line in lines])
        for heading, lines in weekly.parts(report)
    ]


@register.filter
def one_line(text: str) -> str:
    """Without control characters, line breaks and marks of direction: names are clients'."""
    return "".join(each if each.isprintable() else " " for each in text)
