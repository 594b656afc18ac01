"""Every kind of caller, and a default project with one row of everything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.utils import timezone

from helmdash.core.access.permissions import SHELL, MemberRole, Scope
from helmdash.core.alerts.channels import ChannelKind
from helmdash.operations.access import keys, members
from helmdash.operations.alerts.editing import ChannelEdit, save_channel, send_test
from helmdash.operations.fitting.catalogs import import_catalog
from helmdash.operations.fitting.fits import fit_catalog
from helmdash.operations.whatif.asking import ask
from helmdash.queries.access.access import ProjectInfo
from helmdash.records.models import (
    AlertChannel,
    AlertDelivery,
    ApiKey,
    Budget,
    BudgetAlias,
    Call,
    CatalogRevision,
    Conversation,
    Exporter,
    Fit,
    HealthChange,
    Membership,
    PlanRecord,
    Project,
    Suggestion,
    Upstream,
    WhatIf,
)
from tests.admin.house import make_house, make_project, record
from tests.factories import make_capture, make_suggestion, sign_in
from tests.plan_rows import make_plan

CATALOG = {"packs": [{"name": "blog.publish", "description": "Publishes a post."}]}
# Members of the default project come by the order of their rights.
PEOPLE = ("stranger", "staff", "other_owner", "viewer", "editor", "owner", "superuser")
# Scopes in the default project; the same in another; one that was ended.
KEYS = (*Scope, "admin_elsewhere", "all_elsewhere", "revoked")


def on_both(everybody: Sequence[str], *both: str) -> list[Any]:
    """Everybody as parameters of a test; on the second database only who is named in `both`.

    Who may do what is decided before any statement differs: one caller who gets everywhere sends
    all statements there are, one of another project all that are narrowed down.
    """
    assert {*both} <= {*everybody}
    return [
        who if who in both else pytest.param(who, marks=pytest.mark.one_database)
        for who in everybody
    ]


@dataclass(frozen=True, slots=True)
class House:
    """The default project with rows in it, another one without, and the names of the rows."""

    project: ProjectInfo
    other: ProjectInfo
    fit: str

    def row(self, table: str) -> Any:
        """A row of the default project; of every project, where rows have none."""
        found = _ROWS[table].objects.all()
        own = found.filter(project_id=self.project.id) if _has_project(table) else found
        row = own.order_by("pk").first()
        assert row is not None, table
        return row


_ROWS: dict[str, type[Any]] = {
    "alertchannel": AlertChannel,
    "alertdelivery": AlertDelivery,
    "apikey": ApiKey,
    "budget": Budget,
    "budgetalias": BudgetAlias,
    "call": Call,
    "catalogrevision": CatalogRevision,
    "conversation": Conversation,
    "exporter": Exporter,
    "fit": Fit,
    "healthchange": HealthChange,
    "membership": Membership,
    "planrecord": PlanRecord,
    "project": Project,
    "suggestion": Suggestion,
    "upstream": Upstream,
    "user": get_user_model(),
    "whatif": WhatIf,
}


def _has_project(table: str) -> bool:
    return table not in ("budgetalias", "exporter", "project", "user")


def make_full_house() -> House:
    """All that pages and the admin have an address for."""
    project = make_house()
    other = make_project(slug="elsewhere")
    now = timezone.now()
    import_catalog(actor=SHELL, project_id=project.id, name="tools", body=CATALOG, now=now)
    fit = fit_catalog(
        actor=SHELL,
        project=project,
        model="openai/gpt-4o",
        intent="write",
        catalog=None,
        catalog_name=None,
        context=None,
        defaults=None,
        history=(),
        caller="owner",
        now=now,
    )
    for number, prompt in enumerate((20_000, 120_000)):
        usage = {"prompt_tokens": prompt, "completion_tokens": 9}
        record(make_capture(id=f"call-{number}", usage=usage), project=project)
    make_plan(project)
    figures = {"input_tokens": 9_000, "output_tokens": 900, "tier": "C"}
    Budget.objects.create(key="acme/one", project_id=project.id, **figures)
    BudgetAlias.objects.create(prefix="acme/uno", target="acme/one")
    # An address that may not be called: nothing leaves the machine.
    Exporter.objects.create(name="phoenix", url="https://phoenix.test", enabled=False)
    Upstream.objects.create(
        name="sim", kind="openai", base_url="http://127.0.0.1:9/v1", project_id=project.id
    )
    make_suggestion(project=project)
    ask(
        actor=SHELL,
        project_id=project.id,
        edits=[{"key": "acme/one", "changes": {"input_tokens": 8_000}}],
        title="",
        since=None,
        until=None,
        now=now,
    )
    edit = ChannelEdit(
        name="chat", kind=ChannelKind.SLACK, address="https://hooks.example.com/chat"
    )
    channel = save_channel(actor=SHELL, project_id=project.id, edit=edit, now=now)
    send_test(actor=SHELL, project_id=project.id, channel_id=channel.id, now=now)
    keys.create_key(actor=SHELL, name="to-look-at", project=project.slug)
    members.set_member(actor=SHELL, user="somebody", project=project.slug, role=MemberRole.VIEWER)
    return House(project=project, other=other, fit=fit.fit_id)


def browser(who: str, house: House) -> Client:
    """Somebody's browser; nobody's is not signed in."""
    if who in ("viewer", "editor", "owner"):
        return sign_in(who, project=house.project, role=MemberRole(who))
    if who == "other_owner":
        return sign_in(who, project=house.other, role=MemberRole.OWNER)
    client = Client()
    if who != "nobody":
        user = get_user_model().objects.create_user(username=who)
        user.is_staff, user.is_superuser = who in ("staff", "superuser"), who == "superuser"
        user.save()
        client.force_login(user)
    return client


def key_of(who: str, house: House) -> str:
    """A key by the name of its scope, or one of KEYS."""
    everything = [scope for scope in Scope if scope is not Scope.ADMIN]
    scopes = {"admin_elsewhere": [Scope.ADMIN], "revoked": [Scope.ADMIN]}.get(
        who, everything if who == "all_elsewhere" else [who]
    )
    project = house.other if who.endswith("elsewhere") else house.project
    made = keys.create_key(actor=SHELL, name=who, scopes=tuple(scopes), project=project.slug)
    if who == "revoked":
        keys.revoke_key(actor=SHELL, name=who, now=timezone.now())
    return made.secret


def holds(who: str, scope: str | None) -> bool:
    """Whether a key of KEYS may use a route of a scope, in its own project."""
    if who == "revoked":
        return False
    if scope is None or who in (scope, "admin", "admin_elsewhere"):
        return True
    return who == "all_elsewhere" and scope != "admin"
