from __future__ import annotations

import csv
import io
import json
import re
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from helmdash.core.access.permissions import MemberRole
from helmdash.operations.budgets.shipped import load_budgets
from helmdash.records.models import Budget, BudgetAlias, Project
from tests.admin.forms import text_of
from tests.admin.house import make_house, make_project
from tests.admin.test_budgets import LIST, add, fallback
from tests.factories import sign_in

CSV, JSON = "0", "1"
HEAD = "project,key,input_tokens,output_tokens,tier,allows_llm_filter\n"


def exported(operator: Client, kind: str, address: str = LIST) -> bytes:
    response = operator.post(f"{address}export/", {"resource": "0", "format": kind})
    assert response["Content-Disposition"].startswith("attachment")
    content: bytes = response.content
    return content


def preview(operator: Client, content: bytes | str, kind: str, address: str = LIST) -> Any:
    file = SimpleUploadedFile(
        "rows.txt", content if isinstance(content, bytes) else content.encode()
    )
    return operator.post(
        f"{address}import/", {"resource": "0", "format": kind, "import_file": file}
    )


def confirm(operator: Client, response: Any, address: str = LIST) -> Any:
    sent = response.context["confirm_form"].initial
    return operator.post(f"{address}process_import/", sent, follow=True)


def numbers() -> list[dict[str, Any]]:
    rows = Budget.objects.order_by("id").values()
    return [{k: v for k, v in row.items() if k != "updated_at"} for row in rows]


@pytest.mark.parametrize("query", ["format=0", "enabled__exact=zz", "p=x"])
def test_an_export_takes_a_filter_that_is_none_as_the_list_does(
    operator: Client, query: str
) -> None:
    response = operator.get(f"{LIST}export/?{query}", follow=True)

    assert response.status_code == 200
    assert "Export" in text_of(response)


@pytest.mark.parametrize("kind", [CSV, JSON])
def test_an_export_imported_again_changes_nothing(operator: Client, kind: str) -> None:
    load_budgets()
    other = make_project(slug="other")
    add(
        key="acme/one",
        project_id=other.id,
        evidence='Two lines,\r\nwith "quotes", =signs\nand 漢字 \U0001f600',
        chars_per_token=3.3,
        input_cost_usd_per_mtok=0.15,
        critical_max_tokens=40_000,
    )
    before, edits = numbers(), Budget.history.count()

    response = preview(operator, exported(operator, kind), kind)
    finished = confirm(operator, response)

    assert f"0 new, 0 changed, {len(before)} as they are" in text_of(response)
    assert "0 new, 0 changed" in text_of(finished)
    assert numbers() == before
    assert Budget.history.count() == edits


@pytest.mark.parametrize("kind", [CSV, JSON])
def test_an_export_imports_cleanly_into_another_house(operator: Client, kind: str) -> None:
    add(key="acme/one", evidence="by hand", context_length=64_000)
    content = exported(operator, kind)
    before = {row["key"]: {**row, "id": 0, "created_at": 0} for row in numbers()}
    # Another house: other numbers for its rows, and fewer of them.
    Budget.objects.exclude(key="").delete()
    Budget.objects.update(input_tokens=1)

    confirm(operator, preview(operator, content, kind))

    assert {row["key"]: {**row, "id": 0, "created_at": 0} for row in numbers()} == before


def test_nothing_is_stored_before_the_preview_is_confirmed(operator: Client) -> None:
    row = add(key="acme/one")

    response = preview(operator, HEAD + ",acme/one,1,1,A,true\n", CSV)

    page = text_of(response)
    assert "input_tokens: 50000 → 1" in page
    assert "tier: B → A" in page
    assert "allows_llm_filter: False → True" in page
    row.refresh_from_db()
    assert (row.input_tokens, row.history.count()) == (50_000, 1)


def test_a_confirmed_import_is_told_in_the_history_of_each_row_it_changed(
    operator: Client,
) -> None:
    row, untouched = add(key="acme/one"), add(key="acme/two")
    content = HEAD + ",ACME/One,41000,2000,B,false\n,acme/two,50000,2000,B,false\n"

    finished = confirm(operator, preview(operator, content, CSV))

    assert "0 new, 1 changed, 1 left as they were" in text_of(finished)
    newest = row.history.first()
    assert newest is not None
    assert newest.history_change_reason == "imported from rows.txt"
    assert str(newest.history_user) == "operator"
    assert (row.history.count(), untouched.history.count()) == (2, 1)


def test_columns_and_members_left_out_keep_their_values(operator: Client) -> None:
    add(key="acme/one", evidence="kept", context_length=64_000)
    add(key="acme/two", evidence="kept too")
    rows = [
        {"key": "acme/one", "input_tokens": 41_000},
        {"input_tokens": 42_000, "key": "acme/two", "evidence": "new"},
    ]

    confirm(operator, preview(operator, json.dumps(rows), JSON))

    one, two = Budget.objects.get(key="acme/one"), Budget.objects.get(key="acme/two")
    assert (one.input_tokens, one.evidence, one.context_length) == (41_000, "kept", 64_000)
    assert (two.input_tokens, two.evidence) == (42_000, "new")


@pytest.mark.parametrize(
    ("line", "field", "sentence"),
    [
        # a fraction of a token
        (",acme/x,1.5,1,A,true", "input_tokens", "must be a whole number, not '1.5'"),
        # a word for a number
        (",acme/x,many,1,A,true", "input_tokens", "must be a whole number"),
        # beyond what the column holds
        (f",acme/x,{10**30},1,A,true", "input_tokens", "less than or equal to"),
        # nothing where something is due
        (",acme/x,,1,A,true", "input_tokens", "cannot be null"),
        # a tier nobody knows
        (",acme/x,1,1,Z,true", "tier", "not a valid choice"),
        # neither yes nor no
        (",acme/x,1,1,A,perhaps", "allows_llm_filter", "must be true or false"),
        # a project nobody knows
        ("nowhere,acme/x,1,1,A,true", "project", "no project with the slug 'nowhere'"),
    ],
)
def test_a_wrong_row_is_named_with_its_field_and_nothing_can_be_confirmed(
    operator: Client, line: str, field: str, sentence: str
) -> None:
    rows = Budget.objects.count()

    response = preview(operator, f"{HEAD},acme/fine,1,1,A,true\n{line}\n", CSV)

    said = re.search(rf"Row 2, {field}: .{{1,100}}", text_of(response))
    assert said is not None
    assert sentence in said.group()
    assert "confirm_form" not in response.context
    assert Budget.objects.count() == rows


@pytest.mark.parametrize(
    ("content", "kind", "sentence"),
    [
        # a column nobody knows
        ("project,key,imput_tokens\n,acme/x,1\n", CSV, "Unknown column: imput_tokens"),
        # no key at all
        ("project,tier\n,A\n", CSV, "key"),
        # the wrong format
        (HEAD, JSON, "The file cannot be read in this format"),
        # JSON that is no list
        ('{"key": "acme/x"}', JSON, "it must be a list of objects"),
        # not UTF-8
        (b"project,key\n,\xff\xfe\n", CSV, "The file cannot be read in this format"),
        # a row longer than the head
        ("project,key\n,acme/x,1,2,3\n", CSV, "The file cannot be read in this format"),
        # deeper than anybody means
        ("[" * 100_000, JSON, "The file cannot be read in this format"),
        # as many columns as rows: a table of both would have a million cells
        pytest.param(
            json.dumps([{f"c{n}": 1} for n in range(1000)]),
            JSON,
            "more than 100 columns, or members",
            id="wide",
        ),
        pytest.param("a," * 100_000 + "\n1\n", CSV, "more than 100 columns", id="wide CSV"),
        # more rows than anybody means: each is looked at by itself
        pytest.param("key\n" + "a\n" * 300_000, CSV, "more than 1,000 rows", id="long"),
        pytest.param(
            json.dumps([{"key": "a"}] * 1_001), JSON, "more than 1,000 rows", id="long JSON"
        ),
        # more columns than a sentence should name
        ("c0,c1,c2,c3,c4,c5,c6\n1,1,1,1,1,1,1\n", CSV, "Unknown column: c0, c1, c2, c3, c4, …."),
        # what spreadsheet programs save beside CSV in UTF-8
        pytest.param(HEAD.encode("utf-16"), CSV, "in UTF-16 or UTF-32; save", id="UTF-16"),
        pytest.param(HEAD.encode("utf-16-le"), CSV, "save it as CSV in UTF-8", id="no BOM"),
        pytest.param(b"PK\x03\x04" + bytes(range(256)), CSV, "save the table as CSV", id="zip"),
        ("key,evidence\nacme/\xe9,a\n".encode("latin-1"), CSV, "byte 19 is none; save it in UTF-8"),
        # a quote that is never closed would take in all rows that follow
        ('key,evidence\nacme/x,"a\nacme/y,b\n', CSV, "opened and never closed"),
        pytest.param("key\n" + "a" * 200_000, CSV, "more than 131,072 characters", id="cell"),
        ('key,evidence\nacme/x,"a"b\n', CSV, "write a quote within a cell twice"),
        # of two columns of one name one would count
        ("key,tier,key\na,A,b\n", CSV, "the column key stands there 2 times"),
        # what no database stores alike, as a name, a key, a project or a text
        *[
            (template % half, JSON, said)
            for half, said in [("\\ud800", "half of a surrogate pair"), ("\\u0000", "U+0000")]
            for template in [
                '[{"key": "a", "%s": 1}]',
                '[{"key": "%s"}]',
                '[{"key": "a", "project": "%s"}]',
                '[{"key": "a", "evidence": "%s"}]',
            ]
        ],
        (f"{HEAD},acme\x00/x,1,1,A,true\n", CSV, "U+0000"),
        # objects that say nothing
        ("[{}]", JSON, "none of its objects has a member"),
        pytest.param('[{"key": %s}]' % ("9" * 5_000), JSON, "thousands of digits", id="digits"),
        # no rows
        ("", CSV, "empty"),
    ],
)
def test_a_file_that_cannot_be_used_gets_a_sentence(
    operator: Client, content: bytes | str, kind: str, sentence: str
) -> None:
    response = preview(operator, content, kind)

    assert response.status_code == 200
    assert sentence in text_of(response)
    assert "confirm_form" not in response.context


@pytest.mark.parametrize(
    "value",
    [
        # kinds of JSON that no text, number or switch is
        {"evidence": 5},
        {"input_tokens": True},
        {"input_tokens": [1]},
        {"input_tokens": {"a": 1}},
        {"chars_per_token": "NaN"},
        {"chars_per_token": 1e999},
        {"enabled": "maybe"},
        {"enabled": 2},
    ],
)
def test_odd_json_is_refused_by_field(operator: Client, value: dict[str, Any]) -> None:
    row = {"key": "acme/x", "input_tokens": 1, "output_tokens": 1, "tier": "A", **value}

    response = preview(operator, json.dumps([row]), JSON)

    assert f"Row 1, {next(iter(value))}:" in text_of(response)


@pytest.mark.parametrize("word", ["fallback", "nobody"])
def test_no_file_tells_whose_word_a_window_is(operator: Client, word: str) -> None:
    """A word that nobody knows ended every lookup in every project."""
    kept = add(key="acme/kept", window_copied_from="fallback", tier="B")
    head = "key,input_tokens,output_tokens,tier"

    response = preview(operator, f"{head},window_copied_from\n,1,1,A,{word}\n", CSV)
    assert "Unknown column: window_copied_from" in text_of(response)
    assert b"window_copied_from" not in exported(operator, CSV)
    confirm(operator, preview(operator, f"{head}\nacme/kept,50000,2000,A\n", CSV))

    kept.refresh_from_db()
    assert (kept.tier, kept.window_copied_from) == ("A", "fallback")


def test_no_import_can_disable_or_lose_the_fallback(operator: Client) -> None:
    pk = fallback().pk

    response = preview(operator, "project,key,enabled\n,,false\n", CSV)
    confirm(operator, preview(operator, HEAD + ",acme/x,1,1,A,true\n", CSV))

    assert "Row 1, enabled: The fallback cannot be disabled" in text_of(response)
    assert fallback().pk == pk
    assert fallback().enabled


def test_no_model_stands_in_for_itself(operator: Client) -> None:
    content = "project,key,input_tokens,output_tokens,tier,fallback_model\n,acme/x,1,1,A,Acme/X\n"

    assert "cannot stand in for itself" in text_of(preview(operator, content, CSV))


def test_the_same_key_twice_in_one_file_is_one_row(operator: Client) -> None:
    content = HEAD + ",acme/x,1,1,A,true\n,Acme/X,2,1,A,true\n"

    confirm(operator, preview(operator, content, CSV))

    assert Budget.objects.get(key__iexact="acme/x").input_tokens == 2


def test_rows_that_changed_since_the_preview_are_not_imported_by_halves(operator: Client) -> None:
    other = make_project(slug="other")
    content = HEAD + ",acme/one,1,1,A,true\nother,acme/two,1,1,A,true\n"
    response = preview(operator, content, CSV)
    Project.objects.filter(pk=other.id).delete()

    finished = confirm(operator, response)

    assert "Nothing was imported" in text_of(finished)
    assert not Budget.objects.filter(key="acme/one").exists()


def test_a_preview_that_was_tampered_with_is_not_imported(operator: Client) -> None:
    response = preview(operator, HEAD + ",acme/one,1,1,A,true\n", CSV)
    sent = {**response.context["confirm_form"].initial, "import_file_name": "/etc/passwd"}

    finished = operator.post(LIST + "process_import/", sent, follow=True)

    assert "Upload the file again" in text_of(finished)
    assert not Budget.objects.filter(key="acme/one").exists()


@pytest.mark.parametrize(
    "given",
    [
        {"format": "99"},
        {"format": "x"},
        {"format": ""},
        {"format": JSON},  # than which the preview had another
        {"resource": "77"},
        {"resource": "x"},
        {"import_file_name": ""},
    ],
)
def test_a_confirmation_that_no_preview_gave_imports_nothing(
    operator: Client, given: dict[str, str]
) -> None:
    response = preview(operator, HEAD + ",acme/one,1,1,A,true\n", CSV)
    sent = {**response.context["confirm_form"].initial, **given}

    finished = operator.post(LIST + "process_import/", sent, follow=True)

    assert "Upload the file again" in text_of(finished)
    assert not Budget.objects.filter(key="acme/one").exists()


def test_an_export_is_what_the_list_shows(operator: Client) -> None:
    add(key="acme/one", tier="A")
    add(key="acme/two", tier="C")

    response = operator.post(
        LIST + "export/?q=acme&tier__exact=C", {"resource": "0", "format": CSV}
    )

    rows = list(csv.DictReader(io.StringIO(response.content.decode())))
    assert [row["key"] for row in rows] == ["acme/two"]


def test_aliases_travel_too(operator: Client) -> None:
    BudgetAlias.objects.create(prefix="zz/", target="acme/")
    address = "/admin/records/budgetalias/"
    content = exported(operator, JSON, address)
    BudgetAlias.objects.filter(prefix="zz/").update(target="other/")

    confirm(operator, preview(operator, content, JSON, address), address)

    assert BudgetAlias.objects.get(prefix="zz/").target == "acme/"


def test_text_from_a_file_is_never_markup(operator: Client) -> None:
    row = {"key": "<script>alert(1)</script>", "input_tokens": 1, "output_tokens": 1, "tier": "A"}

    page = preview(operator, json.dumps([row]), JSON).content.decode()

    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page


# What a spreadsheet would run, or what looks like what the export itself puts in front.
LIVE = [
    '=HYPERLINK("http://x.test")',
    "+1+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "  =1",
    "\uff1d1",
    "'=1",
    "''=1",
]


@pytest.mark.parametrize("text", [*LIVE, "it's =", "'quoted'", "-", "a-b"])
def test_a_cell_that_looks_like_a_formula_leaves_as_text_and_comes_back(
    operator: Client, text: str
) -> None:
    row = add(key="acme/one", evidence=text, chars_per_token=3.5)

    file = exported(operator, "0")

    rows = csv.DictReader(io.StringIO(file.decode(), newline=""))
    (cells,) = (each for each in rows if each["key"] == row.key)
    assert re.match(r"[\s]*[=+\-@\uff1d]", cells["evidence"]) is None
    assert not cells["evidence"].startswith(("\t", "\r", "\n"))
    assert (cells["input_tokens"], cells["chars_per_token"]) == (str(row.input_tokens), "3.5")
    row.delete()
    confirm(operator, preview(operator, file, "0"))
    back = Budget.objects.get(key="acme/one")
    # A form takes line ends as they come; blanks around a text are kept.
    assert back.evidence == text


def test_json_carries_texts_as_they_are(operator: Client) -> None:
    add(key="acme/one", evidence=LIVE[0])

    rows = json.loads(exported(operator, "1"))

    assert [row["evidence"] for row in rows if row["key"] == "acme/one"] == [LIVE[0]]


def test_an_import_tells_nothing_of_projects_that_one_does_not_see(db: None) -> None:
    """Whether there is such a project, or such a row of it, comes to the same."""
    project, elsewhere = make_house(), make_project(slug="elsewhere")
    figures = {"input_tokens": 9_000, "output_tokens": 900, "tier": "C"}
    Budget.objects.create(key="secret/model", project_id=elsewhere.id, **figures)
    Budget.objects.create(key="own/model", project_id=project.id, **figures)
    client = sign_in("somebody", project=project, role=MemberRole.EDITOR)

    def told(slug: str, key: str) -> list[str]:
        file = f"project,key,input_tokens,output_tokens,tier\n{slug},{key},1,1,C\n"
        text = text_of(preview(client, file, CSV))
        return re.findall(r"Row 1, project: (.*?)\.", text.replace(slug, "SLUG"))

    unknown = told("nowhere", "secret/model")
    assert len(unknown) == 1
    assert told("elsewhere", "secret/model") == told("elsewhere", "no/model") == unknown
    assert told(project.slug, "own/model") == []
