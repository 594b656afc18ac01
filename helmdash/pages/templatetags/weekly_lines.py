"""The weekly report in lines of text, for mails: nothing in them is anybody's markup."""

from __future__ import annotations

from django import template

from helmdash.pages.parts import weekly
from helmdash.queries.weekly import WeeklyReport

register = template.Library()


@register.simple_tag
def week_parts(report: WeeklyReport, slug: str) -> list[tuple[str, list[weekly.Line]]]:
    """Headings and the lines under each, in pieces."""
    return [
        (heading, [[piece._replace(text=one_line(piece.text)) for piece in line] for line in lines])
        for heading, lines in weekly.parts(report, slug=slug)
    ]


@register.simple_tag
def numbered(parts: list[tuple[str, list[weekly.Line]]]) -> dict[str, int]:
    """The pages that lines lead to, each with the number it has at the end of a plain text."""
    paths = [piece.path for _, lines in parts for line in lines for piece in line if piece.path]
    return {path: number for number, path in enumerate(dict.fromkeys(paths), 1)}


@register.filter
def number_of(numbers: dict[str, int], path: str) -> int:
    """The number of a page among them."""
    return numbers[path]


@register.filter
def one_line(text: str) -> str:
    """Without control characters, line breaks and marks of direction: names are clients'."""
    return "".join(each if each.isprintable() else " " for each in text)
