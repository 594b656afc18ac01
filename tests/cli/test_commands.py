"""Management commands, as a person at the shell uses them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.signals import user_logged_in
from django.core.management import CommandError, call_command, get_commands, load_command_class

from helmdash import conf
from helmdash.cli.base import BaseCommand
from helmdash.conf import (
    BadSetting,
    Env,
    idle_variables,
    read_env,
    unknown_variables,
    variable_name,
)
from helmdash.operations.access import keys, project_settings
from helmdash.operations.budgets import shipped
from helmdash.queries.access.access import default_project, find_caller, find_project
from helmdash.queries.conversations import conversations
from helmdash.records.models import ApiKey, Budget, Exporter, Membership, PlanRecord, Project
from tests.factories import NOW, make_project
from tests.plan_rows import make_plan
from tests.support import ROOT


def run(*arguments: str) -> str:
    out = StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


@pytest.mark.parametrize("end", ["", " "])
@pytest.mark.django_db
def test_an_empty_end_of_a_key_is_not_taken_for_never(end: str) -> None:
    with pytest.raises(CommandError, match="--expires: is empty"):
        run("apikey", "create", "--name", "ci", f"--expires={end}")

    assert not ApiKey.objects.exists()


@pytest.mark.django_db
def test_apikey_create_prints_only_a_key_that_works() -> None:
    secret = run("apikey", "create", "--name", "ci", "--scopes", "record,read").strip()

    caller = find_caller(key=secret)
    assert caller is not None
    assert caller.name == "ci"
    assert caller.scopes == {"record", "read"}


def test_every_command_shows_what_nobody_sees_in_a_name() -> None:
    own = {name for name, app in get_commands().items() if app == "helmdash.cli"}

    assert "up" in own
    # Django's own, which colors parts of its lines, and names migrations only.
    own.remove("migrate")
    for name in own:
        assert isinstance(load_command_class("helmdash.cli", name), BaseCommand), name


@pytest.mark.django_db
def test_names_are_printed_with_escapes() -> None:
    run("apikey", "create", "--name", "c\x1b[31m\u202ei\n")
    run("member", "add", "vera", "default")
    get_user_model().objects.filter(username="vera").update(username="v\u200be\u202era")

    assert "c\\x1b[31m\\u202ei" in run("apikey", "list")
    assert "v\\u200be\\u202era" in run("member", "list")


@pytest.mark.django_db
def test_keys_of_two_projects_may_have_one_name() -> None:
    """Else whoever makes one learns what keys of another project are called."""
    theirs = run("apikey", "create", "--name", "ci").strip()
    Project.objects.create(slug="mine", name="Mine")
    ours = run("apikey", "create", "--name", "ci", "--project", "mine").strip()

    with pytest.raises(CommandError, match="project: keys called ci are in default, mine"):
        run("apikey", "revoke", "ci")
    run("apikey", "revoke", "ci", "--project", "mine")

    assert [find_caller(key=key) is None for key in (theirs, ours)] == [False, True]


@pytest.mark.django_db
def test_a_revoked_key_is_nobody_and_its_name_is_free_again() -> None:
    secret = run("apikey", "create", "--name", "ci").strip()

    run("apikey", "revoke", "ci")

    assert find_caller(key=secret) is None
    assert run("apikey", "create", "--name", "ci").strip() != secret
    assert "revoked" in run("apikey", "list")
    assert secret not in run("apikey", "list")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("create", "--name", "x", "--scopes", "fly"), "scopes: fly; known scopes are record"),
        (("create", "--name", "x", "--project", "mars"), "no project called mars"),
        (("create", "--name", " "), "name: a key needs a name"),
        (("revoke", "nobody"), "no active key is called nobody"),
    ],
)
def test_apikey_says_what_is_wrong(arguments: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(CommandError, match=sentence):
        run("apikey", *arguments)


@pytest.mark.django_db
def test_loading_budgets_again_changes_nothing_and_keeps_edits() -> None:
    make_project()
    row = Budget.objects.get(key="openai/gpt-4o", project=None)
    row.input_tokens = 12_345
    row.save()
    Budget.objects.get(key="openai/o3-mini", project=None).delete()

    said = run("load_budgets")

    assert "Added 0 budgets" in said
    assert "Left deleted: openai/o3-mini." in said
    assert "Left 1 edited rows" in said
    row.refresh_from_db()
    assert row.input_tokens == 12_345


@pytest.mark.django_db
def test_load_budgets_update_shows_a_diff_and_resets_only_on_yes() -> None:
    make_project()
    row = Budget.objects.get(key="openai/gpt-4o", project=None)
    row.input_tokens = 12_345
    row.save()

    shown = run("load_budgets", "--update")
    row.refresh_from_db()
    assert "openai/gpt-4o: input_tokens 12345 -> 100000" in shown
    assert row.input_tokens == 12_345

    run("load_budgets", "--update", "--yes")
    row.refresh_from_db()
    assert row.input_tokens == 100_000
    assert shipped.compare_budgets() == ()


@pytest.mark.django_db
def test_demo_data_loads_twice_shows_every_level_and_goes_away_whole(
    caplog: pytest.LogCaptureFixture,
) -> None:
    make_project()
    with caplog.at_level("INFO"):
        run("demo", "load")
        told = run("demo", "load")

    assert "?project=demo" in told
    # What made-up fits cut is nobody's news.
    assert "trimmed" not in caplog.text
    demo = find_project(slug="demo")
    assert demo is not None
    assert demo.is_demo
    assert all(conversations.counters(project_id=demo.id).values())
    real = conversations.counters(project_id=default_project().id)
    assert not any(real.values())

    assert "Removed" in run("demo", "remove")
    assert find_project(slug="demo") is None
    assert "no demo data" in run("demo", "remove")


@pytest.mark.django_db
def test_set_up_again_changes_nothing_and_shows_a_secret_only_where_it_was_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = "key-of-the-operator-4711"
    first = run("up", "--setup-only")
    second = run("up", "--setup-only")
    admin = get_user_model().objects.get(username="admin")
    user_logged_in.send(type(admin), request=None, user=admin)
    monkeypatch.setenv("HELMDASH_BOOTSTRAP_API_KEY", given)
    monkeypatch.setenv("HELMDASH_ADMIN_PASSWORD", "password-of-the-operator")
    conf.env.cache_clear()
    try:
        third, fourth = run("up", "--setup-only"), run("up", "--setup-only")
    finally:
        monkeypatch.undo()
        conf.env.cache_clear()

    # Made now or known already: the operator has it, and a log is no place for it.
    for said in (third, fourth):
        assert given not in said
        assert "password-of-the-operator" not in said
        # It is there by now, and keeps what it had.
        assert "HELMDASH_ADMIN_PASSWORD is for the first start" in said
        assert "manage.py changepassword admin" in said
        assert "key-of-t…, the one of HELMDASH_BOOTSTRAP_API_KEY" in said
        assert "Bearer $HELMDASH_BOOTSTRAP_API_KEY" in said
        # Somebody has come in by a link by now.
        assert "/login/link/" not in said
        assert "manage.py member link admin" in said

    assert first.endswith("All is set up. To serve: .venv/bin/python manage.py up\n")
    assert "Ctrl-C" not in first
    assert "/login/link/" in first
    assert "/login/link/" in second
    key = next(line.split()[2] for line in first.splitlines() if "API key" in line)
    assert find_caller(key=key) is not None
    assert f"Bearer {key}" in first
    assert key not in second
    assert "Bearer $HELMDASH_API_KEY" in second
    assert Budget.objects.count() == Budget.history.count()


@pytest.mark.django_db
def test_the_exporter_of_the_environment_is_there_before_the_first_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HELMDASH_OTLP_EXPORT_URL", "http://localhost:4318")
    conf.env.cache_clear()
    try:
        run("up", "--setup-only")
    finally:
        monkeypatch.undo()
        conf.env.cache_clear()

    assert Exporter.objects.get().url == "http://localhost:4318"


@pytest.mark.django_db
def test_members_are_added_changed_listed_and_removed() -> None:
    project_settings.ensure_project()

    made = run("member", "add", "vera", "default")
    changed = run("member", "add", "vera", "default", "--role", "owner")

    assert "vera is viewer in default." in made
    assert "/login/link/" in made
    assert "/login/link/" not in changed
    assert run("member", "list").split() == ["default", "vera", "owner"]
    assert run("member", "list", "nowhere").startswith("No members")
    assert "/login/link/" in run("member", "link", "vera")
    with pytest.raises(CommandError, match="keeps its last owner"):
        run("member", "remove", "vera", "default")
    run("member", "add", "rosa", "default", "--role", "owner")
    assert "no member" in run("member", "remove", "vera", "default")
    of_vera = Membership.history.filter(user__username="vera")
    kept = of_vera.order_by("history_id").values_list("history_type", "role")
    assert list(kept) == [("+", "viewer"), ("~", "owner"), ("-", "owner")]
    reasons = set(Membership.history.values_list("history_change_reason", flat=True))
    assert reasons == {"by the command line"}


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("add", "vera", "nowhere"), "project: there is no project called nowhere"),
        (("add", "ve ra", "default"), "user: Enter a valid username"),
        (("remove", "vera", "default"), "user: vera is no member of default"),
        (("link", "nobody"), "user: there is no active account called nobody"),
    ],
)
def test_a_member_that_cannot_be_is_named(arguments: tuple[str, ...], said: str) -> None:
    project_settings.ensure_project()

    with pytest.raises(CommandError, match=said):
        run("member", *arguments)


@pytest.mark.django_db
def test_the_bootstrap_key_of_the_environment_is_made_once() -> None:
    project_settings.ensure_project()

    assert keys.ensure_bootstrap_key(secret="given-key-of-the-operator") is not None
    assert keys.ensure_bootstrap_key(secret="given-key-of-the-operator") is None
    assert find_caller(key="given-key-of-the-operator") is not None


def test_the_settings_page_of_the_docs_lists_every_setting() -> None:
    text = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")

    for field, info in Env.model_fields.items():
        assert f"`{variable_name(field)}`" in text
        assert (info.description or "?") in text


def test_settings_help_lists_every_setting() -> None:
    said = run("settings_help")

    for field in Env.model_fields:
        assert variable_name(field) in said


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("PORT", "eighty", "PORT='eighty'"),
        ("PORT", "70000", "PORT='70000'"),
        ("HELMDASH_PORT", "eighty", "HELMDASH_PORT='eighty'"),
        ("DATABASE_URL", "mysql://x", "must start with postgres://"),
        ("HELMDASH_DATABASE_URL", "mysql://u:sk-hidden@x", "HELMDASH_DATABASE_URL='mysql://"),
        ("HELMDASH_REPLICA_URL", "postgres://h", "HELMDASH_REPLICA_URL='postgres://h'"),
        ("HELMDASH_WORKERS", "0", "HELMDASH_WORKERS='0'"),
        ("HELMDASH_LOG_LEVEL", "LOUD", "HELMDASH_LOG_LEVEL='LOUD'"),
        ("HELMDASH_PUBLIC_URL", "example.org", "must start with http"),
        ("HELMDASH_OIDC_ISSUER", f"https://a.test/{'x' * 255}", "at most 255 characters"),
        ("HELMDASH_BOOTSTRAP_API_KEY", "two words", "one word"),
        ("HELMDASH_OTLP_EXPORT_URL", "gopher://x", "URL='gopher://x': it must start with http://"),
        ("HELMDASH_OTLP_EXPORT_HEADERS", "sk-hidden", "HEADERS=***: header 1 is no header"),
    ],
)
def test_a_bad_setting_is_named(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, sentence: str
) -> None:
    monkeypatch.setenv(name, value)

    with pytest.raises(BadSetting) as error:
        read_env()

    assert str(error.value).startswith(f"{name}=")
    assert sentence in str(error.value)
    assert "sk-hidden" not in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "others", "own", "read"),
    [
        ("HOST", "builder", "127.0.0.2", lambda: read_env().host),
        ("PORT", "3000", "8123", lambda: str(read_env().port)),
        (
            "DATABASE_URL",
            "mysql://shop",
            "postgres:///own",
            lambda: read_env().database_url,
        ),
    ],
)
def test_a_variable_of_other_programs_counts_less_than_our_own(
    monkeypatch: pytest.MonkeyPatch, name: str, others: str, own: str, read: Callable[[], str]
) -> None:
    """A shell may have them for another program, as a platform has PORT."""
    monkeypatch.setenv(name, others)
    monkeypatch.setenv(f"HELMDASH_{name}", own)

    assert read() == own
    assert unknown_variables() == []

    monkeypatch.setenv(f"HELMDASH_{name}", "")
    monkeypatch.setenv(name, own)
    assert read() == own


def test_there_is_no_replica_of_sqlite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "")
    monkeypatch.setenv("HELMDASH_REPLICA_URL", "postgres://h/d")

    with pytest.raises(BadSetting, match="wants DATABASE_URL on PostgreSQL"):
        read_env()


def test_a_misspelt_setting_is_pointed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HELMDASH_DATADIR", "elsewhere")

    assert "did you mean HELMDASH_DATA_DIR?" in " ".join(unknown_variables())


@pytest.mark.parametrize(
    ("set_up", "told"),
    [
        (
            {"HELMDASH_OIDC_CLIENT_ID": "helm", "HELMDASH_OIDC_CLIENT_SECRET": "secret"},
            [
                "HELMDASH_OIDC_CLIENT_ID does nothing, for HELMDASH_OIDC_ISSUER is not set",
                "HELMDASH_OIDC_CLIENT_SECRET does nothing, for HELMDASH_OIDC_ISSUER is not set",
            ],
        ),
        (
            {"HELMDASH_OTLP_EXPORT_HEADERS": "Authorization=secret"},
            ["HELMDASH_OTLP_EXPORT_HEADERS does nothing, for HELMDASH_OTLP_EXPORT_URL is not set"],
        ),
        ({"HELMDASH_MAIL_FROM": "a@b.example", "HELMDASH_SMTP_URL": "smtp://m.example"}, []),
        # Set to nothing, as a compose file does.
        ({"HELMDASH_MAIL_FROM": ""}, []),
    ],
)
def test_a_setting_that_another_one_is_missing_for_is_pointed_out(
    monkeypatch: pytest.MonkeyPatch, set_up: dict[str, str], told: list[str]
) -> None:
    """A start without a word, and a sign-in page without the button that was set up."""
    for name, value in set_up.items():
        monkeypatch.setenv(name, value)

    assert idle_variables(read_env()) == told


def test_what_clients_are_told_is_no_misspelt_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    """README has people export them in the shell in which they also start the server."""
    for name in ("HELMDASH_API_KEY", "HELMDASH_URL"):
        monkeypatch.setenv(name, "x")

    assert unknown_variables() == []


@pytest.mark.django_db
def test_retain_says_what_goes_and_lets_go_of_waiting_answers() -> None:
    project = make_project(slug="short", retention_days=30)
    make_plan(project, "old", days=40_000, result={"steps": []}, result_until=NOW)
    waiting: dict[str, Any] = {
        "waiting": "sealed",
        "result_until": datetime(2020, 1, 1, tzinfo=UTC),
    }
    make_plan(default_project(), **waiting)

    told = run("retain", "--dry-run")
    assert "short: would delete 0 calls, 0 conversations, 0 fits, 1 plans older than 30" in told
    assert PlanRecord.objects.exclude(waiting="").count() == 1

    told = run("retain")
    assert "short: deleted 0 calls, 0 conversations, 0 fits, 1 plans older than 30" in told
    assert "let go of 1 answers that waited to be fetched" in told
    assert PlanRecord.objects.get().waiting == ""
