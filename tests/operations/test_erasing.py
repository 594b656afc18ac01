"""Erasing a conversation: nothing of it is left anywhere, and nothing of another is touched."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus, urlencode

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from helmdash.core.access.permissions import SHELL, Forbidden, KeyHolder, Person
from helmdash.core.agents.claude_hooks import ClientEvent, ClientEventKind
from helmdash.core.alerts.rules import RuleKind
from helmdash.core.calls.routes import CallRoute
from helmdash.core.conversations.fingerprints import ChatTurn, links_of
from helmdash.core.text.query_terms import quoted, term_text
from helmdash.operations import care, saved_views, triage
from helmdash.operations.fitting.fits import fit_catalog
from helmdash.operations.recorder import recorder
from helmdash.operations.recorder.files.units import Unit
from helmdash.operations.recording.client_events import note_event
from helmdash.operations.retention.erasing import (
    UNSEEN,
    Erased,
    erase_conversation,
    finish_broken_off,
    referring,
)
from helmdash.operations.retention.expired import delete_expired
from helmdash.operations.rollups.folding import fold_all
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.calls import calls
from helmdash.records.models import (
    ApiKey,
    AuditEntry,
    Call,
    Conversation,
    Fit,
    KeptAnswer,
    PlanRecord,
    SavedView,
    StoredMessage,
)
from tests.factories import NOW, make_capture, make_key, make_project
from tests.operations.alert_support import channel, look, rule
from tests.operations.care_support import Talk
from tests.plan_rows import add_attempt, make_plan
from tests.recording.support import make_ruled_project, record

SYSTEM = {"role": "system", "content": "Be brief."}
MARK = "word-of-the-erased-one"


@pytest.fixture
def project(db: None) -> ProjectInfo:
    """Keeps texts."""
    return make_ruled_project(payload="full")


def user(text: str) -> dict[str, object]:
    return {"role": "user", "content": text}


def say(project: ProjectInfo, name: str, conversation: str, *texts: str) -> None:
    """A call that carries the system prompt and these texts, its answer too."""
    messages = (SYSTEM, *map(user, texts))
    given = {
        "id": name,
        "conversation": conversation or None,
        "messages": messages,
        "content": texts[-1],
    }
    record(project, make_capture(**given))


def fill(project: ProjectInfo, name: str) -> None:
    """A conversation with all that can hang on one, every text with its name in it."""
    talk = Talk(project, name=name)
    for number, tokens in enumerate((20_000, 110_000, 110_000, 120_000)):
        talk.advance(has_user_prompt=True, user_prompt=f"{name} asks {number}")
        talk.call(tokens, messages=(SYSTEM, user(f"{name} says {number}")), content=f"{name} hears")
    triage.say(
        actor=Person(name="vera", is_superuser=True),
        project=project,
        conversation=name,
        word=triage.Word.NOTE,
        text=f"Look at {name}.",
        now=NOW,
    )
    compaction = ClientEvent(kind=ClientEventKind.COMPACTION, conversation=name, key=f"{name} 1")
    note_event(project=project, event=compaction, now=NOW)
    care.add_reminder(
        actor=SHELL, project=project, conversation=name, content=f"{name} notes", now=talk.tick()
    )
    care.clear(actor=SHELL, project=project, conversation=name, now=talk.tick())
    talk.advance(has_user_prompt=True, user_prompt=f"{name} waits")
    for agent, parent in ((f"{name}:one", name), (f"{name}:two", f"{name}:one")):
        said = {"messages": (user(f"{agent} says"),), "content": f"{agent} hears"}
        record(project, make_capture(id=agent, conversation=agent, parent=parent, **said))
    ask(project, name)


def ask(project: ProjectInfo, name: str) -> None:
    """A fit, a plan and a call that was made for the plan, all for a conversation."""
    fit_catalog(
        actor=SHELL,
        project=project,
        model="m",
        intent=f"{name} intends",
        catalog={"packs": [{"name": "a.b", "description": "One."}], "pipelines": []},
        catalog_name=None,
        context=None,
        defaults=None,
        history=(),
        caller="k",
        now=NOW,
        conversation=name,
    )
    plan = make_plan(project, f"{name}-plan", intent=f"{name} plans", conversation=name)
    attempt = add_attempt(plan)
    messages = (user(f"{name} is planned"),)
    record(project, make_capture(id=attempt.call_name, conversation=None, messages=messages))


def everything() -> dict[str, list[str]]:
    """Every row of our tables, as text, by table; what calls share by project left out."""
    shared = {"Project", "Budget", "RuleSet", "SchemaMark", "RecorderLedger", "AuditEntry"}
    tables: dict[str, list[str]] = {}
    for model in apps.get_app_config("records").get_models():
        if model.__name__ in shared or model.__name__.startswith("Historical"):
            continue
        rows = list(model._base_manager.order_by("pk").values())
        for row in rows:
            # Counts in JSON, in the order in which they came.
            row["figures"] = json.loads(row.get("figures") or "{}")
            # How far changes are added up, whatever they were.
            row.pop("folded_to", None)
        tables[model.__name__] = [json.dumps(row, default=str, sort_keys=True) for row in rows]
    return tables


def erase(project: ProjectInfo, name: str, **over: Any) -> Erased:
    return erase_conversation(
        **{"actor": SHELL, "project": project, "conversation": name, "now": NOW, **over}
    )


@pytest.mark.parametrize("batch", [1, 3, 2000])
def test_nothing_of_it_is_left_and_all_else_is_as_it_was(project: ProjectInfo, batch: int) -> None:
    fill(project, "other")
    fold_all()
    before = everything()
    fill(project, MARK)

    erased = erase(project, MARK, batch=batch)

    assert (erased.calls, erased.messages, erased.prompts) == (4 + 2 + 1, 4 + 2 + 1, 1)
    assert (erased.fits, erased.plans, erased.sub_agents) == (1, 1, 2)
    assert everything() == before
    assert erase(project, MARK) == Erased()
    # Who erased something is kept, not what it was called.
    entries = [f"{each} {each.changes}" for each in AuditEntry.objects.order_by("id")]
    assert "conversation (erased) erased" in entries[-1]
    assert not any(MARK in each for each in entries)
    assert any("other" in each for each in entries)


def test_no_saved_view_asks_for_it_any_more(project: ProjectInfo) -> None:
    """Whoever's, however it is spelt; others stay, and the log says nothing of what it asked."""
    name = 'a "b" c'
    user_id = User.objects.create(username="vera").pk
    asking = [
        {"conversation": name, "range": "7d"},
        {"q": name},
        {"query": f"level:critical {term_text('conversation', name)}"},
        {"query": f"-Parent:x,{quoted(name)}"},
    ]
    others = [
        {"conversation": f"{name}d"},
        {"query": f"model:{quoted(name)}"},
        {"query": f"conversation:{quoted(name + 'd')}"},
        {"level": "critical"},
    ]
    for is_shared in (True, False):
        for number, each in enumerate(asking + others):
            saved_views.save_view(
                actor=SHELL,
                user_id=user_id,
                project_id=project.id,
                noun="calls",
                name=str(number),
                address=urlencode(each),
                is_shared=is_shared,
            )

    erase(project, name)

    left = [urlencode(each) for each in others]
    assert list(SavedView.objects.order_by("pk").values_list("address", flat=True)) == left * 2
    told = AuditEntry.objects.filter(kind="view").order_by("pk").values_list("changes", flat=True)
    addresses = ["(erased)"] * len(asking) + left
    assert list(told) == [*([["address", None, each]] for each in addresses), *([[]] * 8)]


def test_it_reaches_every_table_that_refers_to_a_conversation_or_call(project: ProjectInfo) -> None:
    """So that a table that is added later cannot be forgotten: `fill` has to fill it, too."""
    fill(project, MARK)
    found = Conversation.objects.get(name=MARK)
    unfilled = set()
    for owner, keys in ((Conversation, [found.pk]), (Call, Call.objects.values("pk"))):
        for model, field in referring(owner):
            if not model._base_manager.filter(**{f"{field}__in": keys}).exists():
                unfilled.add(model.__name__)

    # Left by calls whose conversation is recognized: erased in the test below.
    assert unfilled <= {"ConversationMark"}


def test_a_message_stays_while_any_other_call_carries_it(project: ProjectInfo) -> None:
    say(project, "a1", "a", "common", "only a")
    say(project, "b1", "b", "common", "only b")
    say(project, "n1", "", "common", "only a")
    days = dict(StoredMessage.objects.values_list("hash", "latest_seen_at"))

    assert erase(project, "a").messages == 0  # the nameless call carries all of them
    assert dict(StoredMessage.objects.values_list("hash", "latest_seen_at")) == days
    assert erase(project, "b").messages == 1

    shown = calls.find(project_id=project.id, call_id="n1")
    assert shown is not None
    assert shown.messages == (SYSTEM, user("common"), user("only a"))


def test_another_project_with_the_same_words_is_left_alone(project: ProjectInfo) -> None:
    other = make_ruled_project(slug="other", name="Other", payload="full")
    say(project, "x", "talk", "the same")
    say(other, "x", "talk", "the same")

    erase(project, "talk")

    shown = calls.find(project_id=other.id, call_id="x")
    assert shown is not None
    assert shown.messages == (SYSTEM, user("the same"))


def test_a_recognized_conversation_is_not_recognized_any_more(project: ProjectInfo) -> None:
    asked = ChatTurn(role="user", text="A question of some length " * 9)
    first = links_of([asked], reply=None, is_retry=False)
    record(project, make_capture(id="one", conversation=None, links=first))
    name = Conversation.objects.get().name

    erase(project, name)
    record(project, make_capture(id="two", conversation=None, links=first))

    assert Conversation.objects.get().name != name
    assert Conversation.objects.get().generation == 1


def test_a_late_call_begins_it_anew(project: ProjectInfo) -> None:
    say(project, "a", "talk", "first")
    say(project, "b", "talk", "second")
    erase(project, "talk")

    say(project, "late", "talk", "third")

    assert Conversation.objects.get().generation == 1
    shown = calls.find(project_id=project.id, call_id="late")
    assert shown is not None
    assert shown.messages == (SYSTEM, user("third"))


def test_what_was_put_aside_of_it_goes_and_the_rest_stays(project: ProjectInfo) -> None:
    keep = recorder()._rejected.keep
    for name, number in (("talk", project.id), ("talk", project.id + 1), ("other", project.id)):
        capture = make_capture(conversation=name, content="text")
        keep(Unit(project_id=number, project=None, captures=(capture,), size=0), why="test")
    path = recorder()._spool_dir / "rejected.ndjson"

    erase(project, "talk")

    told = [json.loads(line) for line in path.read_text().splitlines()]
    path.unlink()
    assert [(each["project"], each["capture"]["conversation"]) for each in told] == [
        (project.id + 1, "talk"),
        (project.id, "other"),
    ]


def test_an_erasure_that_broke_off_is_finished_by_retention(project: ProjectInfo) -> None:
    say(project, "a", "a", "common", "gone")
    say(project, "b", "b", "common")
    StoredMessage.objects.update(latest_seen_at=UNSEEN)
    Call.objects.get(name="a").payload.delete()

    lasting = replace(project, retention_days=3650)  # reaches nothing of these calls
    delete_expired(actor=SHELL, project=lasting, now=NOW)

    assert StoredMessage.objects.count() == 2
    assert not StoredMessage.objects.filter(latest_seen_at=UNSEEN).exists()
    assert finish_broken_off(project_id=project.id, now=NOW) == 0


def test_what_was_asked_for_a_conversation_without_calls_goes_with_its_name(
    project: ProjectInfo,
) -> None:
    ask(project, "early")
    ask(project, "other")

    erased = erase(project, "early")

    assert (erased.calls, erased.fits, erased.plans) == (1, 1, 1)
    assert [each.conversation for each in Fit.objects.all()] == ["other"]
    assert [each.name for each in PlanRecord.objects.all()] == ["other-plan"]
    assert [each.name for each in Call.objects.all()] == ["other-plan-1"]


@pytest.mark.parametrize("asked", ["s-1:a1", "s-1:agent:builtin:Explore", "s-1"])
def test_what_goes_by_the_kind_that_an_agent_was_first_known_by_is_erased_with_it(
    project: ProjectInfo, asked: str
) -> None:
    """Alerts, views, the log and what was asked for it have the name of then, which has the
    session's in it. What is of an agent of that kind in another session stays."""
    hook = channel(project)
    rule(project, RuleKind.LEVEL, hook, level="critical", group_s=0)
    user_id = User.objects.create(username="vera").pk
    for minutes, session in ((1, "s-1"), (2, "s-2")):
        kind = f"{session}:agent:builtin:Explore"
        told: dict[str, Any] = {
            "id": f"anthropic:{session}",
            "parent": session,
            "client_name": "claude-code",
        }
        usage = {"prompt_tokens": 125_000, "completion_tokens": 9}
        by_log = make_capture(**told, conversation=kind, usage=usage, routes=(CallRoute.OTLP_LOG,))
        record(project, by_log)
        assert look(NOW + timedelta(minutes=minutes))
        note: dict[str, Any] = {"word": triage.Word.NOTE, "text": "Look.", "now": NOW}
        triage.say(actor=SHELL, project=project, conversation=kind, **note)
        ask(project, kind)
        saved_views.save_view(
            actor=SHELL,
            user_id=user_id,
            project_id=project.id,
            noun="calls",
            name=session,
            address=urlencode({"query": term_text("conversation", kind)}),
            is_shared=False,
        )
        by_span = make_capture(
            **told, conversation=f"{session}:a1", usage=usage, routes=(CallRoute.OTLP_SPAN,)
        )
        record(project, by_span)
    assert {each.name for each in Conversation.objects.all()} >= {"s-1:a1", "s-2:a1"}

    erase(project, asked)

    kept = [f"{table}: {row}" for table, rows in everything().items() for row in rows]
    kept += [f"{each} {each.changes}" for each in AuditEntry.objects.all()]
    kept = [unquote_plus(each) for each in kept]
    assert [each for each in kept if "s-1:" in each] == []
    of_other = {each.partition(":")[0] for each in kept if "s-2:agent:builtin:Explore" in each}
    assert of_other >= {"Alert", "AlertMessage", "Fit", "PlanRecord", "SavedView"}


def test_only_whoever_may_erase_does(project: ProjectInfo) -> None:
    say(project, "a", "talk", "first")
    key = KeyHolder(
        name="k", scopes=frozenset({"record", "read"}), project_id=project.id, is_of_default=True
    )

    with pytest.raises(Forbidden):
        erase(project, "talk", actor=key)

    assert Call.objects.exists()


def test_by_command(project: ProjectInfo, capsys: pytest.CaptureFixture[str]) -> None:
    say(project, "a", "talk", "first")

    call_command("erase_conversation", "talk")
    with pytest.raises(CommandError, match="there is no conversation called talk"):
        call_command("erase_conversation", "talk", "--project", "default")

    said = capsys.readouterr().out.splitlines()
    assert said == [
        "default: erased 1 calls, 2 messages, 0 fits and 0 plans of talk and 0 sub-agents.",
    ]


def test_the_command_says_where_a_conversation_is_that_it_does_not_find(
    project: ProjectInfo,
) -> None:
    elsewhere = make_project(slug="elsewhere")
    record(elsewhere, make_capture(conversation="talk"))

    with pytest.raises(CommandError) as refused:
        call_command("erase_conversation", "talk")
    with pytest.raises(CommandError, match="there is no conversation called a\\.b"):
        call_command("erase_conversation", "a.b")

    assert str(refused.value) == (
        "default: there is no conversation called talk, and nothing else has this name; nothing is "
        "erased. One is in elsewhere: say --project."
    )
    assert Call.objects.count() == 1


def test_what_has_the_name_of_no_conversation_is_erased_by_command(
    project: ProjectInfo, capsys: pytest.CaptureFixture[str]
) -> None:
    make_plan(project, conversation="soon")

    call_command("erase_conversation", "soon")

    assert "0 calls, 0 messages, 0 fits and 1 plans of soon" in capsys.readouterr().out


@pytest.mark.django_db(transaction=True)
def test_no_file_of_sqlite_holds_its_words_any_more() -> None:
    if connection.vendor != "sqlite":
        return  # PostgreSQL overwrites at its next vacuum
    project = make_ruled_project(payload="full")
    database = Path(connection.settings_dict["NAME"])
    files = [database, database.with_name(f"{database.name}-wal")]
    # Short ones share a page with others that stay, long ones have pages of their own.
    for number in range(40):
        say(project, f"kept{number}", "other", f"kept {number} " * 30)
        say(project, f"gone{number}", "talk", f"{MARK} {number} " * (1 + number**2))

    erase(project, "talk")

    assert [file.read_bytes().count(MARK.encode()) for file in files] == [0, 0]


def test_kept_answers_of_a_day_are_withheld_in_steps(project: ProjectInfo) -> None:
    """On SQLite 80,000 of them would keep every writer waiting for a third of a second."""
    make_key()
    key = ApiKey.objects.get()
    KeptAnswer.objects.bulk_create(
        KeptAnswer(
            api_key=key, request_sha=str(n), body_sha="b", claim="c", sealed="s", expires_at=NOW
        )
        for n in range(1_200)
    )

    with CaptureQueriesContext(connection) as asked:
        erase_conversation(actor=SHELL, project=project, conversation="talk", now=NOW)

    table = connection.ops.quote_name(KeptAnswer._meta.db_table)
    updates = [each["sql"] for each in asked if each["sql"].startswith(f"UPDATE {table}")]
    assert not KeptAnswer.objects.exclude(sealed="").exists()
    assert len(updates) >= 3
    assert all(sql.count(",") < 500 for sql in updates)
