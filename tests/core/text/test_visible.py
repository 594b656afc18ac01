"""What nobody sees is shown, and everything else stays."""

from __future__ import annotations

import unicodedata

import pytest

from helmdash.core.text.visible import visible_lines, visible_name, visible_text

# Control, format, line and paragraph separators, surrogates: none of them is seen.
UNSEEN = {"Cc", "Cf", "Zl", "Zp", "Cs"}
# Format characters that are seen: signs that stand around numbers and words of some scripts.
SEEN = set("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2")


def test_no_unseen_character_stays_in_a_name() -> None:
    left = [
        f"U+{code:04X}"
        for code in range(0x10FFF)
        if unicodedata.category(chr(code)) in UNSEEN
        if visible_name(chr(code)) == chr(code)
        if chr(code) not in SEEN
    ]

    assert left == []


@pytest.mark.parametrize(
    "name", ["openai/gpt-4o", "模型 7", "naïve café", "🙂", "a b", "नमस्ते", "שלום", "ﷺ", "…–"]
)
def test_ordinary_names_stay_as_they_are(name: str) -> None:
    assert visible_name(name) == visible_lines(name) == visible_text(name) == name


@pytest.mark.parametrize(
    ("char", "escape"),
    [
        ("\x00", "\\x00"),
        ("\x1b", "\\x1b"),
        ("\x9b", "\\x9b"),
        ("\u202e", "\\u202e"),
        ("\ufeff", "\\ufeff"),
        ("\U000e0041", "\\U000e0041"),
        ("\n", "\\n"),
    ],
)
def test_an_escape_is_what_programmers_know(char: str, escape: str) -> None:
    assert visible_name(f"a{char}b") == f"a{escape}b"


def test_lines_keep_their_ends_and_texts_their_joiners() -> None:
    assert visible_lines("a\tb\r\n\x1b\u200d") == "a\tb\r\n\\x1b\\u200d"
    # A family is one emoji of three, joined; Persian has a joiner that keeps letters apart.
    for text in ("👨\u200d👩\u200d👧", "می\u200cرود"):
        assert visible_text(text) == text
    assert visible_text("a\u202eb\x1b") == "a\\u202eb\\x1b"
