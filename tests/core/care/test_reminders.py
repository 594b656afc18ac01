"""The re-entry package: six headings, whatever was written and however little room there is."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helmdash.core.care.headings import find_heading, sections
from helmdash.core.care.reminders import (
    HEADINGS,
    PACKAGE_FLOOR_BYTES,
    Note,
    Package,
    build_package,
    package_bytes,
    template,
)
from tests.builders import make_budget

GOAL, PROGRESS, DECISIONS, CHANGES, NEXT, RISKS = HEADINGS


def note(content: str, *, name: str = "n1") -> Note:
    return Note(id=name, kind="note", content=content)


def re_entry(content: str, *, name: str = "p1") -> Note:
    return Note(id=name, kind="re_entry", content=content)


def build(*notes: Note, max_bytes: int = 20_000, draft: dict[str, str] | None = None) -> Package:
    return build_package(notes, max_bytes=max_bytes, round_number=3, draft=draft)


def under(text: str, heading: str) -> str:
    """Give what stands under a heading of a package."""
    after = text.split(f"\n## {heading}\n")[1]
    return after.split("\n\n## ")[0].split("\n\n(")[0].strip("\n")


def test_an_empty_package_names_the_round_and_all_headings() -> None:
    package = build()

    assert package.left_out == ()
    assert package.text == (
        "# Round 3: the context was cleared; this is the re-entry package\n\n"
        + "\n\n".join(f"## {heading}\n(nothing noted)" for heading in HEADINGS)
    )


WHOLE = """I was here.
## Goal and scope
Fix the importer.

Only CSV.
## Current progress
Parser done.
## Key decisions and constraints
No network.
## Changes
- parser.py
## Next steps
1. Write the test
2. Run it
## Open questions and risks
Is BOM allowed?"""


def test_a_note_under_the_six_headings_is_taken_apart() -> None:
    text = build(re_entry(WHOLE)).text

    assert under(text, GOAL) == "Fix the importer.\n\nOnly CSV."
    assert under(text, PROGRESS) == "I was here.\nParser done."
    assert under(text, CHANGES) == "- parser.py"
    assert under(text, NEXT) == "1. Write the test\n2. Run it"
    assert under(text, RISKS) == "Is BOM allowed?"
    assert text.endswith("(From reminders: p1)")


SPELLINGS = [
    ("## Goal and scope\nx", GOAL),
    ("# GOAL AND SCOPE\nx", GOAL),
    ("###Goal & scope:\nx", GOAL),
    ("Goal/scope: x", GOAL),
    ("- Goal/scope\nx", GOAL),  # a list item, as "Context Health Monitor" writes it
    ("- Goal/scope: x", GOAL),
    ("goal / scope:\nx", GOAL),
    ("Goal: x", GOAL),
    ("**Goal**: x", GOAL),
    ("- **Goal:** x", GOAL),
    ("1. Goal and scope\nx", GOAL),
    ("1) **Goal and scope** x", GOAL),
    ("Current progress:\nx", PROGRESS),
    ("## Progress ##\nx", PROGRESS),
    ("Key decisions/constraints: x", DECISIONS),
    ("3. Key decisions and constraints:\nx", DECISIONS),
    ("## Decisions\nx", DECISIONS),
    ("Constraints: x", DECISIONS),
    ("Changes (files/modules): x", CHANGES),
    ("- Changes (files/modules)\nx", CHANGES),
    ("CHANGES\nx", CHANGES),
    ("__Changes__\nx", CHANGES),
    ("**Next steps**\nx", NEXT),
    ("**Next steps:** x", NEXT),
    ("Next steps (actionable):\nx", NEXT),
    ("Next steps (actionable)\n(nothing noted)\nx", NEXT),
    ("  ## Next step\nx", NEXT),
    ("*Next steps*\nx", NEXT),
    ("Open questions/risks: x", RISKS),
    ("6) Open questions and risks\nx", RISKS),
    ("## Risks\nx", RISKS),
    ("Open questions & risks\r\nx", RISKS),
]


@pytest.mark.parametrize(("content", "heading"), SPELLINGS)
def test_a_heading_is_known_in_many_spellings(content: str, heading: str) -> None:
    text = build(re_entry(content)).text

    assert under(text, heading) == "x"
    assert text.count("(nothing noted)") == 5


@pytest.mark.parametrize(
    "content",
    [
        "just words",
        "The next steps are unclear",
        "changes were made",
        "- Risks",  # a list item with a short word is a list item
        "1. progress",
        "    Next steps:",  # code
        "- Goal: 5 users",
        "Nextsteps: a",
        "```\n## Next steps\n```",  # fenced
    ],
)
def test_text_without_a_sure_heading_goes_under_current_progress(content: str) -> None:
    assert sections(content) == {PROGRESS: content.strip("\n")}


def test_an_aside_of_the_agent_stays() -> None:
    assert sections("Next steps (once merged): deploy") == {NEXT: "(once merged) deploy"}


def test_several_notes_are_merged_under_each_heading_in_order() -> None:
    text = build(
        re_entry("Next steps: first", name="a"),
        re_entry("## Next steps\nsecond\nGoal: g", name="b"),
        draft={NEXT: "third"},
    ).text

    assert under(text, NEXT) == "first\nsecond\nDrafted by HelmDash: third"
    assert under(text, GOAL) == "g"
    assert text.endswith("(From reminders: a, b)")


def test_plain_notes_are_listed_with_their_ids_in_order() -> None:
    text = build(note("one\ntwo", name="r1"), note("three\n## Next steps\nno", name="r2")).text

    assert text.endswith("## Reminders\n- [r1] one\n  two\n- [r2] three\n  ## Next steps\n  no")
    assert under(text, NEXT) == "(nothing noted)"


@pytest.mark.parametrize("content", ["## Next steps\ngo on", "Next steps: go on"])
def test_a_note_that_begins_with_a_heading_is_of_the_package(content: str) -> None:
    text = build(note(content, name="r1")).text

    assert under(text, NEXT) == "go on"
    assert text.endswith("(From reminders: r1)")


def test_a_draft_with_a_title_of_its_own_is_not_lost() -> None:
    text = build(draft={"next steps": "a", "Weather": "rain", RISKS: "  "}).text

    assert under(text, NEXT) == "Drafted by HelmDash: a"
    assert under(text, PROGRESS) == "Drafted by HelmDash: rain"
    assert under(text, RISKS) == "(nothing noted)"


def test_a_package_written_back_as_a_note_reads_the_same() -> None:
    first = build(re_entry(WHOLE)).text

    again = sections(first.split("\n\n", 1)[1].removesuffix("\n\n(From reminders: p1)"))

    assert again == sections(WHOLE)


def test_headings_in_a_text_cannot_pass_for_those_of_the_package() -> None:
    fenced = "```\n## Changes\n```"

    text = build(re_entry(fenced), draft={GOAL: "do\n## Next steps\nit"}).text

    assert [line for line in text.split("\n") if line.startswith("## ")] == [
        f"## {heading}" for heading in HEADINGS
    ]


def test_a_long_note_is_cut_and_says_by_how_much() -> None:
    package = build(re_entry("Goal: short\nNext steps: " + "é" * 5_000), max_bytes=1_000)

    said = under(package.text, NEXT)
    kept = said.count("é")
    assert said == "é" * kept + f" [... {10_000 - 2 * kept} bytes left out]"
    assert kept > 150
    assert under(package.text, GOAL) == "short"  # what is short stays whole
    assert package.left_out == ("p1",)


def test_re_entry_notes_come_first_then_the_newest() -> None:
    package = build(
        note("old " * 100, name="old"),
        re_entry("the state of things", name="plan"),
        note("mid " * 100, name="mid"),
        note("new", name="new"),
        max_bytes=620,
    )

    assert "the state of things" in package.text
    assert "- [new] new" in package.text
    assert package.left_out == ("old", "mid")  # in the order of position
    assert len(package.text.encode()) <= 620


def test_notes_without_room_are_counted() -> None:
    package = build(*(note("x" * 300, name=f"r{n}") for n in range(9)), max_bytes=700)

    assert "left out: " in package.text.split("\n")[-1]
    assert "[r8]" in package.text
    assert "[r0]" not in package.text
    assert package.left_out == tuple(f"r{n}" for n in range(9))


def test_room_is_used_when_notes_are_cut() -> None:
    package = build(*(note("x" * 3_000, name=f"r{n}") for n in range(9)), max_bytes=8_000)

    assert 7_800 <= len(package.text.encode()) <= 8_000


@pytest.mark.parametrize(
    ("max_bytes", "lines"),
    [
        (PACKAGE_FLOOR_BYTES + 70, 7),  # title and headings
        (PACKAGE_FLOOR_BYTES, 6),  # headings
        (PACKAGE_FLOOR_BYTES - 1, 6),  # the last one cut
        (20, 2),
        (0, 1),
        (-5, 1),
    ],
)
def test_a_tiny_package_keeps_its_headings_as_long_as_it_can(max_bytes: int, lines: int) -> None:
    package = build(re_entry("x" * 99), note("y"), max_bytes=max_bytes)

    assert package.text.split("\n")[-6:] == template()[: max(max_bytes, 0)].split("\n")[-6:]
    assert len(package.text.split("\n")) == lines
    assert package.left_out == ("p1", "n1")


def test_half_a_character_does_not_stop_a_package() -> None:
    package = build(note("a\ud800b"), draft={GOAL: "\udfff"})

    assert "- [n1] a?b" in package.text
    assert package.text.encode()


@pytest.mark.parametrize(
    ("input_tokens", "chars_per_token", "bytes_"),
    [
        (16_000, 4.0, 10_664),  # 3,200 tokens by the estimator's 1.2
        (16_000, 2.0, 5_332),
        (200_000, 4.0, 133_332),
        (2_048, 4.0, 1_360),
        (500, 4.0, 600),  # at least
        (1, 4.0, 600),
    ],
)
def test_a_package_may_take_a_fifth_of_the_input(
    input_tokens: int, chars_per_token: float, bytes_: int
) -> None:
    budget = make_budget(input_tokens=input_tokens, chars_per_token=chars_per_token)

    assert package_bytes(budget) == bytes_


def test_a_package_may_take_a_fifth_of_a_window_that_is_smaller_than_the_input() -> None:
    budget = replace(make_budget(input_tokens=200_000), limit_tokens=8_192)

    assert package_bytes(budget) == budget.estimator.bytes_within(8_192 // 5)


def test_the_least_package_holds_more_than_its_frame() -> None:
    package = build(re_entry("word " * 400), max_bytes=600)

    assert len(under(package.text, PROGRESS)) > 100


@pytest.mark.parametrize("heading", HEADINGS)
def test_a_heading_finds_itself(heading: str) -> None:
    assert find_heading(heading) == heading
    assert find_heading(heading.upper()) == heading
    assert find_heading(f"{heading}, more") is None


CONTENT = st.text(
    alphabet=st.sampled_from("ab é字😀\n\r#*-:.1 ") | st.characters(), max_size=300
) | st.sampled_from([WHOLE, WHOLE * 5, "x" * 3_000])
NOTES = st.lists(st.tuples(st.sampled_from(["note", "re_entry"]), CONTENT), max_size=8).map(
    lambda pairs: [
        Note(id=f"r{at}", kind=kind, content=content) for at, (kind, content) in enumerate(pairs)
    ]
)
DRAFTS = st.none() | st.dictionaries(st.sampled_from(HEADINGS) | st.text(max_size=9), CONTENT)


@settings(max_examples=200, deadline=None)
@given(NOTES, DRAFTS, st.integers(-1, 3_000))
def test_law_a_package_is_bounded_whole_and_the_same_each_time(
    notes: list[Note], draft: dict[str, str] | None, max_bytes: int
) -> None:
    package = build_package(notes, max_bytes=max_bytes, round_number=2, draft=draft)

    assert len(package.text.encode()) <= max(max_bytes, 0)
    assert package == build_package(notes, max_bytes=max_bytes, round_number=2, draft=draft)
    if max_bytes >= PACKAGE_FLOOR_BYTES:
        headed = [line[3:] for line in package.text.split("\n") if line.startswith("## ")]
        assert headed in (list(HEADINGS), [*HEADINGS, "Reminders"])


@settings(max_examples=100, deadline=None)
@given(NOTES)
def test_law_with_room_no_word_of_a_note_is_lost(notes: list[Note]) -> None:
    package = build_package(notes, max_bytes=10**6, round_number=2)

    assert package.left_out == ()
    for each in notes:
        if each.kind == "note":
            words = each.content.encode("utf-8", "replace").decode().split()
            assert all(word in package.text for word in words)


MARKED = st.text(alphabet="zé*#-(): \n1.", max_size=12)
LINES = st.lists(
    st.tuples(MARKED, st.sampled_from(["", *HEADINGS, "Goal", "Risks", "next step"]), MARKED)
)


@settings(max_examples=200, deadline=None)
@given(LINES)
def test_law_taking_apart_loses_no_letter_but_those_of_headings(
    lines: list[tuple[str, str, str]],
) -> None:
    content = "\n".join("".join(line) for line in lines)

    parts = "".join(sections(content).values())

    # None of the six headings has a z or an é.
    assert parts.count("z") == content.count("z")
    assert parts.count("é") == content.count("é")
