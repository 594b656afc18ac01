"""Texts: what they say, that they stay short, and that a project's own words cannot break them."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helmdash.core.care.guidance import (
    DEFAULT_TEXTS,
    MAX_OWN_CHARS,
    PLACEHOLDERS,
    SAMPLE_FACTS,
    GuidanceFacts,
    render,
    text_problems,
)
from helmdash.core.care.remediation import Strength
from helmdash.core.care.reminders import HEADINGS

BYTE_BOUNDS = {Strength.SOFT: 500, Strength.HARD: 1_400, Strength.CRITICAL: 1_400}
NOTHING_KNOWN = GuidanceFacts(
    conversation="agent-7",
    generation=1,
    round_number=1,
    prompt_tokens=None,
    limit_tokens=None,
    optimal_max_tokens=100_000,
    critical_max_tokens=None,
    remaining=None,
    grace_left=None,
    grace=3,
    cadence=10,
    reminders=0,
)


def sample(strength: Strength, **over: object) -> GuidanceFacts:
    return replace(SAMPLE_FACTS[strength], **over)  # type: ignore[arg-type]


@pytest.mark.parametrize("strength", Strength)
@pytest.mark.parametrize("name", ["a", "x" * 64, "x" * 65, "x" * 255])
def test_a_text_stays_short_whatever_the_name(strength: Strength, name: str) -> None:
    facts = sample(strength, conversation=name, prompt_tokens=10**9, limit_tokens=10**9)

    assert len(render(strength, facts).encode()) <= BYTE_BOUNDS[strength]


@pytest.mark.parametrize("strength", Strength)
def test_a_text_starts_with_its_level_and_figures(strength: Strength) -> None:
    first = render(strength, sample(strength, prompt_tokens=150_000)).split("\n")[0]

    level = "critical" if strength is Strength.CRITICAL else "caution"
    assert first == (f"[HelmDash] Context level: {level}, 150,000 of 200,000 prompt tokens (75 %).")


@pytest.mark.parametrize("strength", Strength)
def test_unknown_figures_are_left_out_of_our_headline(strength: Strength) -> None:
    first = render(strength, NOTHING_KNOWN).split("\n")[0]

    assert first in (
        "[HelmDash] Context level: caution.",
        "[HelmDash] Context level: critical.",
    )


def test_a_prompt_without_a_limit_is_still_told() -> None:
    text = render(Strength.SOFT, replace(NOTHING_KNOWN, prompt_tokens=1_500))

    assert text.startswith("[HelmDash] Context level: caution, 1,500 prompt tokens.")


@pytest.mark.parametrize("left", [3, 2, 1])
def test_the_soft_text_tells_how_many_notices_are_left(left: int) -> None:
    assert f"{left} of 3 notices left" in render(
        Strength.SOFT, sample(Strength.SOFT, grace_left=left)
    )


@pytest.mark.parametrize(
    "said",
    [
        "call add_reminder or update_reminder at least once",
        "what is still missing before it is safe to clear",
        "a draft of the re-entry package",
        "after 10 generations",
        'add_reminder(conversation="agent-7", content="Next steps: ...")',
        'update_reminder(conversation="agent-7", reminder_id="...", content="...")',
        'clear_mind(conversation="agent-7", reminder_content="...")',
        "into your answer as text",  # for agents without the tools
    ],
)
def test_the_hard_text_says(said: str) -> None:
    assert said in render(Strength.HARD, SAMPLE_FACTS[Strength.HARD])


@pytest.mark.parametrize("strength", [Strength.HARD, Strength.CRITICAL])
def test_the_template_gives_the_six_headings_in_order(strength: Strength) -> None:
    text = render(strength, SAMPLE_FACTS[strength])

    assert text.endswith("\n".join(f"## {heading}" for heading in HEADINGS))


@pytest.mark.parametrize(
    ("remaining", "said"),
    [
        (4, "Countdown: 4. After 4 more generations HelmDash clears"),
        (1, "Countdown: 1. After 1 more generation HelmDash clears"),
        (0, "Countdown: 0. This is the last generation; before the next one HelmDash clears"),
        (None, "HelmDash will soon clear"),
    ],
)
def test_the_critical_text_counts_down(remaining: int | None, said: str) -> None:
    text = render(Strength.CRITICAL, sample(Strength.CRITICAL, remaining=remaining))

    assert said in text
    assert "If a user's message waits for an answer, answer it first." in text
    assert "clear_mind(" in text


def test_a_long_name_is_written_once() -> None:
    text = render(Strength.HARD, sample(Strength.HARD, conversation="y" * 200))

    assert text.count("y" * 200) == 1
    assert 'add_reminder(content="Next steps: ...")' in text


@pytest.mark.parametrize(
    ("own", "rendered"),
    [
        ("{prompt_tokens} of {limit_tokens}, {percent} %", "unknown of unknown, unknown %"),
        ("{remaining} left, {grace_left}", "unknown left, unknown"),
        ("{{remaining}}", "{remaining}"),  # doubled braces are braces
        ("{{{cadence}}}", "{10}"),
        ("{nonsense} stays", "{nonsense} stays"),
        ("a { b } c {} {0} {a.b} {!r} {:>9}", "a { b } c {} {0} {a.b} {!r} {:>9}"),
        ("{generation} in {round}, {reminders}", "1 in 1, 0"),
        ("%s %(x)s $x {%", "%s %(x)s $x {%"),
    ],
)
def test_an_own_text_is_filled(own: str, rendered: str) -> None:
    assert render(Strength.HARD, NOTHING_KNOWN, own) == rendered


@pytest.mark.parametrize("own", ["", "  \n "])
def test_a_blank_own_text_gives_ours(own: str) -> None:
    facts = SAMPLE_FACTS[Strength.SOFT]

    assert render(Strength.SOFT, facts, own) == render(Strength.SOFT, facts)
    assert text_problems(own) == ()


@pytest.mark.parametrize("strength", Strength)
def test_our_own_texts_have_no_problems(strength: Strength) -> None:
    assert text_problems(DEFAULT_TEXTS[strength]) == ()
    assert "unknown" not in render(strength, SAMPLE_FACTS[strength])


def test_every_placeholder_is_filled() -> None:
    own = "|".join(f"{{{name}}}" for name in PLACEHOLDERS)

    assert "{" not in render(Strength.CRITICAL, SAMPLE_FACTS[Strength.CRITICAL], own)


@pytest.mark.parametrize(
    ("own", "starts"),
    [
        ("x" * (MAX_OWN_CHARS + 1), ["The text has 4,001 characters"]),
        ("x" * MAX_OWN_CHARS, []),
        ("{left}", ["Unknown placeholder {left}. Known ones: headline, countdown, remaining,"]),
        ("{left} {left}", ["Unknown placeholder {left}."]),  # named once
        ("{ remaining }", ["Unknown placeholder { remaining }."]),
        ("{" + "x" * 99 + "}", ["Unknown placeholder {" + "x" * 40 + "…}."]),
        ("a { b", ["A brace stands alone"]),
        ("{}", ["A brace stands alone"]),
        ("a\0b", ["The text holds a NUL"]),
        ("{{ fine }} {remaining}", []),
    ],
)
def test_problems_of_an_own_text_are_named(own: str, starts: list[str]) -> None:
    problems = text_problems(own)

    assert len(problems) == len(starts)
    for problem, start in zip(problems, starts, strict=True):
        assert problem.startswith(start)


def test_repeated_placeholders_cannot_blow_a_text_up() -> None:
    facts = replace(NOTHING_KNOWN, conversation="x" * 255)

    assert len(render(Strength.HARD, facts, "{conversation}" * 285)) == 2 * MAX_OWN_CHARS


FIGURES = st.none() | st.integers(-5, 10**12)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(Strength),
    st.text(alphabet=st.sampled_from("{}ab _.!:0") | st.characters(), max_size=80)
    | st.lists(st.sampled_from(["{", "}", "{{", *(f"{{{p}}}" for p in PLACEHOLDERS)])).map("".join),
    st.lists(FIGURES, min_size=5, max_size=5),
)
def test_law_render_never_raises(strength: Strength, own: str, figures: list[int | None]) -> None:
    names = ("prompt_tokens", "limit_tokens", "critical_max_tokens", "remaining", "grace_left")
    facts = replace(NOTHING_KNOWN, **dict(zip(names, figures, strict=True)))  # type: ignore[arg-type]

    assert isinstance(render(strength, facts, own), str)
    assert isinstance(text_problems(own), tuple)


def test_samples_tell_every_figure_their_text_uses() -> None:
    names = {field.name for field in fields(GuidanceFacts)} - {"remaining", "grace_left"}

    for strength, facts in SAMPLE_FACTS.items():
        assert all(getattr(facts, name) is not None for name in names)
        assert (facts.remaining is not None) == (strength is Strength.CRITICAL)
        assert (facts.grace_left is not None) == (strength is Strength.SOFT)
