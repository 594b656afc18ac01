"""The table of budgets: what rows do, edits of one and of several, and taking edits back."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from helmdash.core.access.permissions import SHELL
from helmdash.operations.budgets.editing import change_budget
from helmdash.queries.access.access import ProjectInfo
from helmdash.records.models import AuditEntry, Budget
from tests.factories import make_capture, record
from tests.pages.hygiene import faults

LIST, EDIT, EDITS, REVERT = (
    *("/budgets/", "/budgets/edit/", "/budgets/edits/"),
    "/budgets/edits/revert/",
)


@pytest.fixture
def used(project: ProjectInfo) -> ProjectInfo:
    """Prompts of two models, one of them far above its caution line."""
    for number, tokens in enumerate((5_000, 60_000, 105_000)):
        record(
            make_capture(id=f"a{number}", conversation="talk", usage={"prompt_tokens": tokens}),
            project=project,
        )
    record(
        make_capture(id="b", model="google/gemini-2.5-pro", usage={"prompt_tokens": 9_000}),
        project=project,
    )
    return project


def row_of(key: str) -> Budget:
    return Budget.objects.get(key=key, project=None)


def sheet(*rows: Budget, **changes: str) -> dict[str, object]:
    """A form as the page sends it; changes: `<column>` for the first row, `all_<column>`."""
    sent: dict[str, object] = {"row": [row.pk for row in rows]}
    names = (
        *("input_tokens", "output_tokens", "max_catalog_bytes"),
        *("optimal_max_tokens", "critical_max_tokens", "context_length"),
    )
    for row in rows:
        for name in names:
            value = getattr(row, name)
            sent[f"{row.pk}-{name}"] = "" if value is None else str(value)
    for name, value in changes.items():
        if name.startswith("all_"):
            sent[f"all-{name[4:]}"] = value
        else:
            sent[name if name in ("why", "do") else f"{rows[0].pk}-{name}"] = value
    return sent


def texts(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def test_a_row_tells_its_lines_its_models_and_their_prompts(
    owner: Client, used: ProjectInfo, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    # 15, and two of the replica where there is one.
    with django_assert_max_num_queries(18):
        html = owner.get(LIST).content.decode()

    assert faults(html) == []
    found = re.findall(r'<tr id="row-\d+".*?</tr>', html, re.DOTALL)
    assert len(found) == Budget.objects.count()
    # Those in use come first; 115,200 is 90 % of the window of 128,000.
    first = found[0]
    assert all(part in texts(first) for part in ("openai/gpt-4o", "100,000", "115,200", "128,000"))
    assert "3 prompts, from 0 to 128,000 tokens: 67% healthy, 33% caution" in first.replace(
        " %", "%"
    )
    assert sum("<svg" in row for row in found) == 2
    assert all("no model seen" in row for row in found[2:])


@pytest.fixture
def many(used: ProjectInfo) -> list[str]:
    """The keys of far more rows than a page has."""
    keys = [f"acme/model-{n:03}/v" for n in range(230)]
    Budget.objects.bulk_create(
        Budget(key=key, input_tokens=9_000, output_tokens=900, tier="B") for key in keys
    )
    return keys


def rows_in(html: str) -> list[str]:
    return re.findall(r'<tr id="(row-\d+)"', html)


def test_a_long_table_comes_in_pages_and_leaves_out_no_row(
    owner: Client, many: list[str], django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    total = Budget.objects.count()
    address, seen = LIST, list[str]()

    while address:
        with django_assert_max_num_queries(18):
            html = owner.get(address).content.decode()
        assert faults(html) == []
        assert len(html) < 600_000
        assert f"{total} rows" in html
        seen += rows_in(html)
        following = re.search(r'rel="next" href="([^"#]*)', html)
        address = unescape(following.group(1)) if following else ""

    assert len(seen) == total == len(set(seen))
    # Those in use come first.
    assert seen[0] == f"row-{row_of('openai/gpt-4o').pk}"


@pytest.mark.parametrize(("part", "found"), [("MODEL-11", 10), ("model-229", 1), ("nothing", 0)])
def test_rows_are_found_by_a_part_of_their_key(
    owner: Client, many: list[str], part: str, found: int
) -> None:
    html = owner.get(LIST, {"key": part}).content.decode()
    alone = owner.get(LIST, {"key": part}, headers={"HX-Request": "true", "HX-Target": "rules"})

    assert faults(html) == []
    assert len(rows_in(html)) == len(rows_in(alone.content.decode())) == found
    assert f"{found} of {Budget.objects.count()}" in texts(html)
    assert alone.content.decode().startswith('<section class="card" id="rules"')


@pytest.mark.parametrize("page", ["0", "-1", "999999999999999999999", "x", "²", "9"])
def test_a_page_that_is_not_there_is_one_that_is(owner: Client, many: list[str], page: str) -> None:
    assert rows_in(owner.get(LIST, {"page": page}).content.decode())


def test_the_fallback_is_found_by_its_name(owner: Client, many: list[str]) -> None:
    html = owner.get(LIST, {"key": "fallback"}).content.decode()

    assert rows_in(html) == [f"row-{row_of('').pk}"]


def test_rows_say_what_they_do_not_rule(owner: Client, used: ProjectInfo) -> None:
    row = row_of("openai/gpt-4o")
    Budget.objects.create(
        project_id=used.id, key="openai/gpt-4o", input_tokens=9_000, output_tokens=900, tier="A"
    )
    change_budget(
        actor=SHELL,
        budget_id=row_of("openai/gpt-4").pk,
        project_id=used.id,
        changes={"enabled": False},
    )

    html = owner.get(LIST).content.decode()

    assert "replaced by this project" in html.split(f'id="row-{row.pk}"')[1].split("</tr>")[0]
    assert html.count(">disabled<") == 1


def test_an_edit_is_tried_and_then_saved_with_its_reason(owner: Client, used: ProjectInfo) -> None:
    row = row_of("openai/gpt-4o")
    opened = owner.get(f"{EDIT}?row={row.pk}")
    in_place = owner.get(f"{EDIT}?row={row.pk}", headers={"HX-Request": "true"})
    lower = {"optimal_max_tokens": "50000", "critical_max_tokens": "90000"}
    tried = owner.post(EDIT, sheet(row, **lower, do="preview"))
    row.refresh_from_db()
    kept = row.optimal_max_tokens

    saved = owner.post(EDIT, sheet(row, **lower, do="save", why="answers break off"), follow=True)

    assert [faults(each.content.decode()) for each in (opened, tried, saved)] == [[], [], []]
    assert in_place.content.decode().lstrip().startswith('<tr class="editing">')
    said = texts(tried.content.decode())
    assert "1 would be critical instead of caution, 1 would be caution instead of healthy" in said
    assert kept is None
    row.refresh_from_db()
    assert (row.optimal_max_tokens, row.critical_max_tokens) == (50_000, 90_000)
    newest = row.history.latest()
    assert (newest.history_change_reason, newest.history_user.username) == (
        "answers break off",
        "owner",
    )
    told = texts(saved.content.decode())
    assert all(part in told for part in ("owner", "answers break off", "default → 50,000"))
    assert owner.post(EDIT, sheet(row, do="save"))["Location"].startswith(LIST)


WRONG = [
    ({"optimal_max_tokens": "0"}, "Caution above: "),
    ({"input_tokens": ""}, "Input, tokens: "),
    ({"critical_max_tokens": "900000"}, "is above the limit"),
    ({"optimal_max_tokens": "120000"}, "must be below"),
    ({"input_tokens": "x" * 40}, "Input, tokens: "),
    ({"why": "x" * 101}, "Why: "),
]


@pytest.mark.parametrize(("changes", "said"), WRONG)
def test_a_wrong_figure_is_named_and_no_row_is_stored(
    owner: Client, used: ProjectInfo, changes: dict[str, str], said: str
) -> None:
    first, second = row_of("openai/gpt-4o"), row_of("google/gemini-2.5-pro")
    edits = Budget.history.count()

    body = sheet(first, second, **changes, do="save")
    body[f"{second.pk}-input_tokens"] = "70000"
    answer = owner.post(EDIT, body)

    html = answer.content.decode()
    assert (answer.status_code, faults(html)) == (422, [])
    assert said in texts(html)
    assert Budget.history.count() == edits


def test_several_rows_are_edited_together_and_taken_back(owner: Client, used: ProjectInfo) -> None:
    rows = [row_of("openai/gpt-4o"), row_of("google/gemini-2.5-pro"), row_of("ollama/")]
    body = sheet(*rows, all_max_catalog_bytes="22000", do="save", why="one size")

    saved = owner.post(EDIT, body)
    only = re.findall(r"only=(\d+)", saved["Location"])
    sizes = [Budget.objects.get(pk=row.pk).max_catalog_bytes for row in rows]
    change_budget(
        actor=SHELL, budget_id=rows[0].pk, project_id=used.id, changes={"output_tokens": 777}
    )
    reverted = owner.post(REVERT, {"edit": only}, follow=True)

    assert (len(only), sizes) == (3, [22_000] * 3)
    assert AuditEntry.objects.filter(kind="budget", by="owner").count() == 6
    assert "Reverted 3 edits" in reverted.content.decode()
    left = [Budget.objects.get(pk=row.pk) for row in rows]
    assert [row.max_catalog_bytes for row in left] == [row.max_catalog_bytes for row in rows]
    assert left[0].output_tokens == 777
    # Once more: the columns are others now, so nothing at all is done.
    again = owner.post(REVERT, {"edit": only}, follow=True)
    assert "Nothing was reverted." in again.content.decode()
    assert AuditEntry.objects.filter(kind="budget", by="owner").count() == 6


def test_added_and_deleted_rows_are_taken_back_too(owner: Client, used: ProjectInfo) -> None:
    gone = row_of("ollama/")
    number = gone.pk
    gone.delete()
    owner.post(REVERT, {"one": Budget.history.latest().history_id})
    back = Budget.objects.get(pk=number)

    back.delete()
    deleted = Budget.history.latest().history_id
    row = Budget.objects.create(key="ollama/", input_tokens=9, output_tokens=9, tier="C")
    added = Budget.history.latest().history_id
    taken = owner.post(REVERT, {"one": deleted}, follow=True)
    owner.post(REVERT, {"one": added})

    assert back.key == "ollama/"
    assert "Nothing was reverted." in taken.content.decode()
    assert not Budget.objects.filter(pk=row.pk).exists()
    assert owner.post(REVERT, {"one": "987654"}).status_code == 404


def test_who_may_not_edit_every_projects_row_gets_one_for_the_project(
    editor: Client, used: ProjectInfo
) -> None:
    row = row_of("openai/gpt-4o")

    page = editor.get(f"{EDIT}?row={row.pk}").content.decode()
    editor.post(EDIT, sheet(row, optimal_max_tokens="40000", do="save"))

    assert "a row of its own" in page
    row.refresh_from_db()
    own = Budget.objects.get(project_id=used.id)
    assert (row.optimal_max_tokens, own.key, own.optimal_max_tokens) == (
        *(None, "openai/gpt-4o"),
        40_000,
    )
    wide = change_budget(
        actor=SHELL, budget_id=row.pk, project_id=used.id, changes={"output_tokens": 777}
    )
    newest = Budget.history.filter(id=wide.id).latest().history_id
    assert editor.post(REVERT, {"one": newest}).status_code == 403


def test_an_edit_on_an_older_state_is_refused(owner: Client, used: ProjectInfo) -> None:
    row = row_of("openai/gpt-4o")
    seen = (row.updated_at - timedelta(seconds=1)).isoformat()

    body = sheet(row, output_tokens="3000", do="save")
    answer = owner.post(EDIT, {**body, f"{row.pk}-seen_at": seen})
    opened = owner.get(f"{EDIT}?row={row.pk}").content.decode()
    stamp = re.search(rf'name="{row.pk}-seen_at" value="([^"]+)"', opened)
    assert stamp is not None
    fresh = owner.post(EDIT, {**body, f"{row.pk}-seen_at": stamp[1]})

    assert (answer.status_code, fresh.status_code) == (422, 302)
    assert "edited this row meanwhile" in answer.content.decode()


def test_a_week_of_edits_is_one_page(
    owner: Client,
    viewer: Client,
    used: ProjectInfo,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    # They came with the test's database, which may be last week.
    Budget.history.update(history_date=timezone.now())
    for number, key in enumerate(("openai/gpt-4o", "ollama/", "groq/")):
        row = row_of(key)
        owner.post(EDIT, sheet(row, output_tokens=str(500 + number), do="save"))
    owner.get(EDITS)

    with django_assert_num_queries(8):
        page = owner.get(EDITS).content.decode()
    seen = viewer.get(EDITS).content.decode()

    assert (faults(page), page.count("<del>")) == ([], 3)
    assert "came with HelmDash" in page
    assert f"?query=model%3Aollama%2F%2A&amp;range={timezone.now():%Y-%m-%d}" in page
    assert ("Revert" in page, "Revert" in seen) == (True, False)
    assert "No budget was edited" in owner.get(f"{EDITS}?week=2020-W01").content.decode()


@pytest.mark.parametrize(
    "address",
    [
        f"{EDITS}?week=2020-W99",
        f"{EDITS}?week=soon",
        f"{EDITS}?only=x",
        f"{EDITS}?only=987654321",
        f"{EDIT}?row=987654321",
        f"{EDIT}?row=%00",
        f"{EDIT}?" + "&".join(f"row={n}" for n in range(200)),
    ],
)
def test_what_is_not_there_is_said(owner: Client, used: ProjectInfo, address: str) -> None:
    assert owner.get(address).status_code == 404
