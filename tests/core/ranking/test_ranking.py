"""Ranking a catalog against an intent: orders that must hold, and laws."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helmdash.core.catalog.catalog import parse_catalog
from helmdash.core.ranking import lexical
from helmdash.core.ranking.ranking import PastPlan, Ranked, prepare_index, rank
from helmdash.core.text.words import all_words, clauses_of, words_of
from tests.core.catalogs import catalogs, make_pipeline, texts


def ranked(
    intent: str,
    *packs: dict[str, Any],
    pipelines: Sequence[dict[str, Any]] = (),
    history: Sequence[PastPlan] = (),
) -> tuple[Ranked, ...]:
    catalog = parse_catalog({"packs": list(packs), "pipelines": list(pipelines)})
    return rank(prepare_index(catalog), intent, history)


def ids(found: Sequence[Ranked]) -> list[str]:
    return [entry.id for entry in found]


def pack(name: str, description: str = "", **metadata: object) -> dict[str, Any]:
    return {"name": name, "description": description, "metadata": metadata}


# --- orders ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("intent", "better", "worse"),
    [
        # a keyword phrase beats a name
        (
            "write a launch announcement",
            pack("zeta.compose", intent_keywords=["launch announcement"]),
            pack("launch.pad"),
        ),
        ("publish", pack("zeta.send", intent_keywords=["publish"]), pack("publish.thing")),
        # a name beats a description
        ("a screenshot", pack("web.screenshot"), pack("a.b", "Take a screenshot of it.")),
        # a rare word beats a common one
        (
            "render a podcast",
            pack("z.podcast", "Make a podcast."),
            pack("a.render", "Render a file."),
        ),
        # other forms of a word are the same word
        ("summarising articles", pack("z.text", "Article summaries."), pack("a.b", "Send mail.")),
        ("fetch my repositories", pack("z.clone", "A repository."), pack("a.b", "A page.")),
        # camelCase and snake_case names fall into their parts
        ("send an email", pack("zMail.sendEmail"), pack("a.b")),
        ("open a pull request", pack("z.create_pull_request"), pack("a.create_issue")),
        # accents and scripts
        ("eine Ubersicht bitte", pack("z.doc", "Die Übersicht."), pack("a.b", "Der Bericht.")),
        ("画像を作成する", pack("z.img", "画像を作成します。"), pack("a.b", "記事を検索します。")),
        ("ค้นหารูปภาพ", pack("z.img", "รูปภาพ"), pack("a.b", "เสียง")),
        ("нарисуй отчёт", pack("z.x", "Готовит отчёт."), pack("a.b", "Шлёт письмо.")),
        # another word for the same thing
        ("an illustration for the post", pack("z.image", "Make an image."), pack("a.b", "Mail.")),
        # what it cannot do speaks less for it than what it does
        (
            "read tables",
            pack("z.t", "Reads tables."),
            pack("a.t", "Reads prose.", limitations=["no tables"]),
        ),
    ],
)
def test_the_better_entry_comes_first(
    intent: str, better: dict[str, Any], worse: dict[str, Any]
) -> None:
    noise = [pack("n.one", "Count sheep."), pack("n.two", "Render render render files.")]

    found = ids(ranked(intent, worse, *noise, better))

    assert found.index(better["name"]) < found.index(worse["name"])


@pytest.mark.parametrize(
    "intent",
    [
        "rewrite it with blog.rewrite_for_audience",  # by its id
        "use helmdeck__blog-rewrite_for_audience on my text",  # as clients spell it
        "rewrite for audience: engineers",  # by its verb
        "BLOG REWRITE FOR AUDIENCE",
    ],
)
def test_a_pipeline_comes_before_the_named_pack_it_supersedes(intent: str) -> None:
    named = pack("blog.rewrite_for_audience", "Rewrite a text for an audience.")
    chain = make_pipeline(metadata={"supersedes": ["blog.rewrite_for_audience", "blog.publish"]})

    found = ids(ranked(intent, named, pack("a.b", "Rewrite."), pipelines=[chain]))

    assert found[0] == "builtin.blog"


def test_a_pipeline_is_not_lifted_for_a_pack_nobody_named() -> None:
    chain = make_pipeline(name="Chain", description="", metadata={"supersedes": ["blog.publish"]})

    found = ids(ranked("post it", pack("blog.publish", "Post it."), pipelines=[chain]))

    assert found[0] == "blog.publish"


def test_the_host_of_a_url_is_not_a_wish() -> None:
    packs = [
        pack("browser.screenshot_url", "Take a screenshot of a page.", accepts=["url"]),
        pack("github.search", "Search github."),
        pack("github.get_issue", "Get an issue."),
    ]

    for intent in ("take a screenshot of github.com", "screenshot https://github.com/a/b?x=1 now"):
        found = {entry.id: entry.score for entry in ranked(intent, *packs)}
        assert max(found, key=lambda id: found[id]) == "browser.screenshot_url"
        assert found["github.search"] < 0.1


def test_each_part_of_a_request_finds_its_tool() -> None:
    packs = [
        pack("memory.store", "Remember a fact for later."),
        pack("blog.write", "Draft a blog post."),
        pack("image.generate", "Generate an image from a prompt."),
        *(pack(f"noise.n{at}", "Blog posts about facts and blogs.") for at in range(20)),
    ]

    found = ids(ranked("Remember this fact, then draft a blog, and make an image.", *packs))

    assert {"memory.store", "blog.write", "image.generate"} <= set(found[:5])


def test_a_request_is_heard_beside_pasted_text() -> None:
    pasted = "The committee met in the harbour. Ships of many kinds carried grain. " * 20
    packs = [
        pack("calendar.add", "Add an appointment to the calendar."),
        *(pack(f"ship.n{at}", f"Ships and grain in harbour {at}.") for at in range(20)),
    ]

    for intent in (f"{pasted}\n\nPlease add this to my calendar.", f"Add to calendar.\n\n{pasted}"):
        assert "calendar.add" in ids(ranked(intent, *packs))[:3]


@pytest.mark.parametrize("intent", ["", "  \n", "the of and to", "??? !!", "qqqq zzzz"])
def test_an_intent_without_a_known_word_scores_nothing_and_ties_go_by_id(intent: str) -> None:
    found = ranked(intent, pack("b.b"), pack("c.c"), pack("a.a"), pipelines=[make_pipeline("b.a")])

    assert [entry.score for entry in found] == [0.0] * 4
    assert ids(found) == ["a.a", "b.a", "b.b", "c.c"]


@pytest.mark.parametrize("intent", ["", "one", "Scrape the prices. Then draw a chart, please."])
def test_an_empty_catalog_has_no_order_whatever_is_asked(intent: str) -> None:
    assert ranked(intent) == ()


def test_equal_entries_tie_by_id() -> None:
    packs = [pack(name, "Render a deck.") for name in ("x.c", "x.a", "x.b")]

    assert ids(ranked("render a deck", *packs)) == ["x.a", "x.b", "x.c"]


def test_a_very_long_intent_is_read_at_both_ends() -> None:
    packs = [pack("calendar.add", "Add to the calendar."), pack("mail.send", "Send mail.")]
    filler = "lorem ipsum dolor " * 40_000

    found = ranked(f"please send mail. {filler} and add it to the calendar", *packs)

    assert all(entry.score > 0.3 for entry in found)


@pytest.mark.parametrize(
    "text",
    [
        "a." * 200_000,  # a host name without an end
        "a-" * 200_000,
        " " * 400_000,
        "\n" * 400_000,
        "x" * 400_000,  # one endless word
        "http://" + "a." * 200_000,
        "and then " * 50_000,
        "e.g. " * 80_000,
        "? ! . " * 60_000,
    ],
)
def test_no_text_takes_long(text: str) -> None:
    started = time.process_time()

    ranked(text, pack("a.b", text), history=[PastPlan(intent=text, tools=("a.b",))])

    assert time.process_time() - started < 3  # typically below 0.3 s; a guard against the quadratic


# --- history -----------------------------------------------------------------------------------

PAST = (
    PastPlan(intent="prepare the board meeting", tools=("slides.render",)),
    PastPlan(intent="board meeting next week, please prepare it", tools=("slides.render",)),
    PastPlan(intent="file my travel expenses", tools=("sheet.fill",)),
    PastPlan(intent="fill in the travel expenses form", tools=("sheet.fill",)),
)
OFFICE = (pack("mail.send", "Send mail."), pack("sheet.fill", "A."), pack("slides.render", "B."))


def _wordy(numbers: range) -> list[dict[str, Any]]:
    return [
        {
            "name": f"tool{n}.run",
            "description": " ".join(f"filler{n}x{k}" for k in range(30)),
            "metadata": {"intent_keywords": [f"wish{n} number"]},
        }
        for n in numbers
    ]


def test_of_too_many_different_words_those_of_names_and_keywords_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lexical, "MOST_WORDS", 60)
    packs = _wordy(range(12))
    index = prepare_index(parse_catalog({"packs": packs}))
    turned = prepare_index(parse_catalog({"packs": packs[::-1]}))

    assert len(index.lexicon.stems) < 200  # of 400 words
    for n in range(12):
        assert rank(index, f"please do wish{n}")[0].id == f"tool{n}.run"
        assert rank(index, f"run tool{n}")[0].id == f"tool{n}.run"
        assert rank(index, f"run tool{n}") == rank(turned, f"run tool{n}")


def test_the_tools_of_similar_intents_rise() -> None:
    without = ranked("get the board meeting ready", *OFFICE)
    with_past = ranked("get the board meeting ready", *OFFICE, history=PAST)

    assert ids(without)[0] != "slides.render"
    assert ids(with_past)[0] == "slides.render"
    assert with_past[0].history > 0
    assert with_past[0].score == pytest.approx(with_past[0].lexical + with_past[0].history)


@pytest.mark.parametrize(
    "history",
    [
        (),  # none
        (PastPlan(intent="", tools=()),),  # nothing was asked, nothing picked
        (PastPlan(intent="board", tools=("mail.send",), weight=0.0),),  # worth nothing
        (PastPlan(intent="get the board ready", tools=("gone.tool",)),),  # no longer there
    ],
)
def test_a_history_that_says_nothing_changes_nothing(history: tuple[PastPlan, ...]) -> None:
    intent = "get the board meeting ready"

    assert ranked(intent, *OFFICE, history=history) == ranked(intent, *OFFICE)


def test_a_history_that_never_repeats_is_hardly_believed() -> None:
    never = [PastPlan(intent=f"task {at} of the week", tools=(f"tool.t{at}",)) for at in range(200)]
    always = [PastPlan(intent=f"task {at} of the week", tools=("mail.send",)) for at in range(200)]
    packs = [*OFFICE, *(pack(f"tool.t{at}") for at in range(200))]

    doubtful = max(entry.history for entry in ranked("the task of the week", *packs, history=never))
    certain = max(entry.history for entry in ranked("the task of the week", *packs, history=always))

    assert 0 < doubtful < certain / 10


# --- laws --------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(catalog=catalogs(max_entries=15), intent=texts, data=st.data())
def test_every_entry_is_ranked_once_whatever_the_order_of_the_catalog(
    catalog: dict[str, Any], intent: str, data: st.DataObject
) -> None:
    index = prepare_index(parse_catalog(catalog))
    tools = [entry.id for entry in index.entries]
    past = [
        PastPlan(intent=data.draw(texts), tools=(tool,))
        for tool in tools[: data.draw(st.integers(0, 5))]
    ]

    found = rank(index, intent, past)

    shuffled = {
        key: random.Random(5).sample(value, len(value)) if key in ("packs", "pipelines") else value
        for key, value in catalog.items()
    }
    assert sorted(ids(found)) == sorted(tools)
    assert rank(prepare_index(parse_catalog(shuffled)), intent, past) == found
    assert rank(index, intent, past) == found
    keys = [(-entry.score, entry.id) for entry in found]
    assert keys == sorted(keys)
    assert all(0 <= entry.lexical <= 1.02 and entry.history >= 0 for entry in found)


# --- words -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        # without the words that tell nothing here
        (
            "Remember THIS launch \u2014 then draft a blog about it.",
            ["remember", "launch", "draft", "blog"],
        ),
        ("GetMovieImage", ["getmovieimage", "movie", "image"]),
        ("HTTPServer v2", ["httpserver", "http", "server", "v2"]),
        ("user_id list-items", ["user", "id", "list", "items"]),
        ("Ｆｕｌｌｗｉｄｔｈ", ["fullwidth"]),  # NFKC  # noqa: RUF001
        ("Straße", ["strasse"]),  # case folding
        ("naïve café", ["naive", "cafe"]),
        ("日本語", ["日本", "本語"]),
        ("PDF作成", ["pdf", "作成"]),
        ("see https://github.com/a/report.pdf", ["see", "url", "pdf"]),
        ("open www.example.org, now", ["open", "url", "now"]),
    ],
)
def test_words_of_a_text(text: str, words: list[str]) -> None:
    assert [word for word in words_of(text) if word != "get"] == words


def test_all_words_keeps_what_names_a_pack() -> None:
    assert all_words("helmdeck__blog-rewrite_for_audience") == [
        "helmdeck",
        "blog",
        "rewrite",
        "for",
        "audience",
    ]


def test_clauses_tell_requests_from_the_rest() -> None:
    found = clauses_of("The sea was calm. Please book a boat, and add it to my calendar.")

    assert [(clause.words, clause.is_request) for clause in found] == [
        (("sea", "calm"), False),
        (("book", "boat"), True),
        (("add", "calendar"), True),
    ]
