"""What is a client's, and what the user's own words."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helmdash.core.care.wrappers import OPENINGS, WRAPPERS, own_words

REMINDER = "<system-reminder>\nThe todo list is empty.\n</system-reminder>"


@pytest.mark.parametrize("wrapper", WRAPPERS, ids=lambda wrapper: wrapper.tag)
def test_a_block_is_the_clients_unless_it_holds_the_users_words(wrapper) -> None:  # type: ignore[no-untyped-def]
    block = f"<{wrapper.tag}>\nFix <b>it</b>.\n</{wrapper.tag}>"

    assert own_words([block]) == ("Fix <b>it</b>." if wrapper.is_own else "")
    if not wrapper.is_own:
        assert own_words([f"{block}\nDo this."]) == "Do this."
        assert own_words([f"Do this.\n\n{block}\n"]) == "Do this."
        assert own_words([block, "Do this.", f"{block}{block}"]) == "Do this."
    assert wrapper.source


@pytest.mark.parametrize("opening", OPENINGS, ids=lambda opening: opening.begins[:24])
def test_a_text_is_the_clients_as_far_as_its_end_is_known(opening) -> None:  # type: ignore[no-untyped-def]
    assert own_words([f"{opening.begins} of /repo\n\nand more"]) == ""
    if opening.until:
        assert own_words([f"{opening.begins} x\n{opening.until}\nDo this."]) == "Do this."
    assert opening.source


@pytest.mark.parametrize(
    "text",
    [
        "What does <system-reminder> mean?",
        "Explain:\n<system-reminder>\nread me\n</system-reminder>\nand say why it is there.",
        # never closed, closed only, or another one closed
        "<system-reminder> is a tag that I have never seen.",
        "<environment_context>\n<cwd>/tmp</cwd>\nDo this.",
        "Do this.\n</system-reminder>",
        "<system-reminder>\nDo this.\n</environment_context>",
        # in the midst of a line
        "I mean <system-reminder>this</system-reminder>",
        "<systemd-reminder>x</systemd-reminder>",
        "<task>\nDo this.\n</task> and that",
        "## My request for Codex: is a heading.",
        "a < b > c </",
        "# AGENTS.md instructions are in the way.",
    ],
)
def test_a_user_who_speaks_of_a_tag_is_not_taken_for_a_client(text: str) -> None:
    assert own_words([text]) == text


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        # Claude Code: reminders beside the words, and a command with its arguments
        ([REMINDER, "Do this.", REMINDER], "Do this."),
        ([f"{REMINDER}\n{REMINDER}Do this."], "Do this."),
        (
            [
                "<command-message>go</command-message>\n<command-name>/go</command-name>",
                "<command-args>over there</command-args>",
            ],
            "over there",
        ),
        (["<system-reminder>a <system-reminder>b</system-reminder> c</system-reminder> d"], "d"),
        # Codex: the first message, and one from an IDE
        (
            [
                "# AGENTS.md instructions for /repo\n\n<INSTRUCTIONS>\nUse tabs.\n</INSTRUCTIONS>",
                "<environment_context>\n<cwd>/repo</cwd>\n</environment_context>",
                "Do this.",
            ],
            "Do this.",
        ),
        (
            ["# Context from my IDE setup:\n## Open tabs:\n- a\n## My request for Codex:\nDo it."],
            "Do it.",
        ),
        # Cline
        (
            ["<task>\nDo this.\n</task>\n<environment_details>\n# Time\n</environment_details>"],
            "Do this.",
        ),
        # Cursor
        (["<timestamp>now</timestamp>\n<user_query>\nDo this.\n</user_query>"], "Do this."),
        (['<file_content path="a.py">x</file_content>\nDo this.'], "Do this."),
        (["", " \n"], ""),
        ([], ""),
    ],
)
def test_the_words_of_well_known_clients(parts: list[str], words: str) -> None:
    assert own_words(parts) == words


PIECES = st.sampled_from(
    [
        "<system-reminder>",
        "</system-reminder>",
        "<task>",
        "</task>",
        "\n",
        "a",
        " ",
        "<",
        "[Request",
    ]
)


@settings(max_examples=200, deadline=None)
@given(pieces=st.lists(PIECES, max_size=20))
def test_nothing_is_made_up_and_nothing_breaks(pieces: list[str]) -> None:
    text = "".join(pieces)

    words = own_words([text])

    assert words in text
    assert own_words(["Mine.", text]).startswith("Mine.")


@pytest.mark.parametrize(
    "text",
    [
        "<system-reminder></system-reminder>" * 20_000,
        "<system-reminder>" * 40_000,
        "\n<system-reminder>" * 40_000 + "</system-reminder>",
        "a\n" + "<system-reminder>\n</system-reminder>\n" * 20_000,
        "<task>" * 20_000 + "</task>" * 20_000,
        " " * 800_000 + "x",
    ],
)
def test_long_texts_take_no_time(text: str) -> None:
    began = time.process_time()
    own_words([text])

    assert time.process_time() - began < 1.0
