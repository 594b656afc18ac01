"""Who asks, and the projects there are: what every request reads first, by statements worded once.

The ORM took a third of a small request of the API, and as much of a page, to word them and to make
models of their rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import connection
from django.db.models import Model

from helmdash.records.models import ApiKey, Look, Project
from helmdash.records.querysets import moment
from helmdash.records.statements.direct import ask

_OF_KEY = ("id", "name", "scopes", "latest_used_at", "expires_at")
_OF_PROJECT = (
    *("id", "slug", "name", "is_default", "is_demo", "payload", "retention_days", "budget_mode"),
    *("default_upstream", "remediation", "text_days", "redaction_patterns"),
)


class KnownKey(NamedTuple):
    """A key that is not revoked. project: the fields of its project that callers are told."""

    id: int
    name: str
    scopes: list[str]
    latest_used_at: datetime | None
    expires_at: datetime | None
    project: Mapping[str, Any]


def find_key(key_hash: str) -> KnownKey | None:
    """The key of a hash; None where none has it, or it is revoked. One query."""
    statement = (
        f"SELECT {_columns(ApiKey, _OF_KEY)}, {_columns(Project, _OF_PROJECT)} FROM {_t(ApiKey)}"
        f" JOIN {_t(Project)} ON {_t(Project)}.id = {_t(ApiKey)}.project_id"
        f" WHERE {_t(ApiKey)}.key_hash = %s AND {_t(ApiKey)}.revoked_at IS NULL"
    )
    rows = ask(statement, [key_hash])
    if not rows:
        return None
    pk, name, scopes, used_at, expires_at, *of_project = rows[0]
    return KnownKey(
        pk, name, _json(scopes), _time(used_at), _time(expires_at), _project(of_project)
    )


def all_projects() -> list[Mapping[str, Any]]:
    """The fields of every project that callers are told: the default first, demo data last, else by
    name. One query."""
    order = "is_default DESC, is_demo, name"
    statement = f"SELECT {_columns(Project, _OF_PROJECT)} FROM {_t(Project)} ORDER BY {order}"
    return [_project(row) for row in ask(statement, [])]


def find_user(pk: int) -> User | None:
    """An account with how pages look to it. One query."""
    names, of_look = _names(User), _names(Look)
    statement = (
        f"SELECT {_columns(User, names)}, {_columns(Look, of_look)} FROM {_t(User)}"
        f" LEFT JOIN {_t(Look)} ON {_t(Look)}.user_id = {_t(User)}.id WHERE {_t(User)}.id = %s"
    )
    for row in ask(statement, [pk]):
        user: User = _model(User, row[: len(names)])
        # Which is its key, too: null where there is none.
        has_look = row[len(names)] is not None
        look = _model(Look, row[len(names) :]) if has_look else None
        User._meta.get_field("look").set_cached_value(user, look)
        if look is not None:
            Look._meta.get_field("user").set_cached_value(look, user)
        return user
    return None


def find_session(key: str, *, now: datetime) -> Session | None:
    """A session that is not over. One query."""
    statement = (
        f"SELECT {_columns(Session, _names(Session))} FROM {_t(Session)}"
        " WHERE session_key = %s AND expire_date > %s"
    )
    rows = ask(statement, [key, connection.ops.adapt_datetimefield_value(now)])
    return _model(Session, rows[0]) if rows else None


@cache
def _t(model: type[Model]) -> str:
    return connection.ops.quote_name(model._meta.db_table)


@cache
def _columns(model: type[Model], names: tuple[str, ...]) -> str:
    return ", ".join(f"{_t(model)}.{connection.ops.quote_name(name)}" for name in names)


@cache
def _names(model: type[Model]) -> tuple[str, ...]:
    return tuple(str(field.column) for field in model._meta.concrete_fields)


def _model(model: type[Model], values: Sequence[Any]) -> Any:
    """The model of a row, as the ORM makes it."""
    read = list(values)
    for place, expression, converters in _converters(model):
        for convert in converters:
            read[place] = convert(read[place], expression, connection)
    return model.from_db(connection.alias, [f.attname for f in model._meta.concrete_fields], read)


@cache
def _converters(model: type[Model]) -> list[tuple[int, Any, list[Callable[..., Any]]]]:
    found = []
    for place, field in enumerate(model._meta.concrete_fields):
        expression = field.get_col(model._meta.db_table)
        ours = expression.get_db_converters(connection)
        found.append((place, expression, [*connection.ops.get_db_converters(expression), *ours]))
    return [each for each in found if each[2]]


def _project(values: Sequence[Any]) -> Mapping[str, Any]:
    found = dict(zip(_OF_PROJECT, values, strict=True))
    for flag in ("is_default", "is_demo", "remediation"):
        found[flag] = bool(found[flag])
    found["redaction_patterns"] = tuple(_json(found["redaction_patterns"]) or ())
    return found


def _json(value: Any) -> Any:
    """A JSON column: both databases give its text to a plain cursor."""
    return json.loads(value) if isinstance(value, str | bytes) else value


def _time(value: Any) -> datetime | None:
    return None if value is None else moment(value)
