"""The glossary: one row for a word, and every word that a page explains."""

from __future__ import annotations

import re

from tests.support import ROOT

PAGE = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
WORDS = [word for word in re.findall(r"(?m)^\| ([^|]+) \|", PAGE) if word not in {"word", "---"}]


def test_no_word_is_defined_twice() -> None:
    lowered = [word.lower() for word in WORDS]

    assert len(lowered) > 50
    assert sorted(lowered) == sorted(set(lowered))


def test_every_word_that_the_help_page_explains_is_in_the_glossary() -> None:
    page = (ROOT / "templates" / "pages" / "_words.html").read_text(encoding="utf-8")
    explained = [
        word.strip().lower()
        for term in re.findall(r"<dt><strong>(.*?)</strong>", page)
        for word in term.split(",")
        if word.strip() and "{%" not in word
    ]

    assert len(explained) > 10
    assert set(explained) - {word.lower() for word in WORDS} == set()
