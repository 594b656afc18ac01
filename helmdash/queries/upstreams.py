"""Upstreams as they are now: the endpoints a project's calls may go to, and what pages show.

Rows of the project come before global ones of the same name, and both before what the environment
names; a disabled row hides what it stands before. Cached in each process: checked against the
newest edit at every use, and never older than a second.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.db.models import Count, Max, Q, QuerySet

from helmdash import conf
from helmdash.core.access.permissions import Actor, Right, require
from helmdash.core.upstreams.addresses import shown_url, url_problem, with_setting
from helmdash.core.upstreams.endpoints import (
    PRIVATE_SETTING,
    Endpoint,
    EndpointSource,
    ProviderKind,
    WireFormat,
)
from helmdash.records.access.secrets import unseal
from helmdash.records.models import Upstream

# An edit whose transaction overlaps another's could hide from the check; so could a variable.
_MAX_AGE_SECONDS = 1.0
_ENTER_AGAIN = "Its key cannot be read any more: the signing key has changed. Enter it again."


class KeyPlace(StrEnum):
    """Where an upstream's key comes from."""

    VARIABLE = "variable"
    STORED = "stored"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamInfo:
    """One upstream as pages show it: never its key, only where that is.

    `id` and `updated_at` are None for those of the environment; `project` None is every project.
    `shadowed`: another of the same name is used instead. `problem`: why it cannot be called.
    """

    id: int | None
    name: str
    kind: ProviderKind
    formats: tuple[WireFormat, ...]
    base_url: str
    project: str | None
    source: EndpointSource
    key_place: KeyPlace
    key_variable: str
    has_key: bool
    models: tuple[str, ...]
    allow_private: bool
    read_timeout_s: float
    enabled: bool
    shadowed: bool
    problem: str | None
    updated_at: datetime | None


@dataclass(frozen=True, slots=True)
class _Cached:
    revision: tuple[datetime | None, int]
    read_at: float
    endpoints: tuple[Endpoint, ...]


_cache: dict[int | None, _Cached] = {}
_lock = threading.Lock()


def endpoints(*, project_id: int | None) -> tuple[Endpoint, ...]:
    """The endpoints that calls of a project may go to. Their keys are in them.

    The project's own come first, then global ones, then those of the environment; by name in each.
    project_id None: without any project's own.

    One query when nothing was edited in the last second, two otherwise.
    """
    revision = _revision()
    # The clock only ages the cache: no result depends on it.
    moment = time.monotonic()
    cached = _cache.get(project_id)
    if (
        cached is not None
        and cached.revision == revision
        and moment - cached.read_at < _MAX_AGE_SECONDS
    ):
        return cached.endpoints
    fresh = _Cached(revision, moment, _read_endpoints(project_id))
    with _lock:
        _cache[project_id] = fresh
    return fresh.endpoints


def listing(*, project_id: int | None) -> tuple[UpstreamInfo, ...]:
    """Every upstream a project may see, disabled and shadowed ones too, by name. project_id None:
    the global ones alone."""
    rows = list(_visible(project_id))
    ruling = _ruling(rows)
    found = [_row_info(row, shadowed=ruling[row.name] is not row) for row in rows]
    found += [
        _environment_info(endpoint, shadowed=endpoint.name in ruling)
        for endpoint in conf.environment_upstreams()
    ]
    return tuple(sorted(found, key=lambda info: (info.name, info.shadowed)))


def find(*, upstream_id: int) -> UpstreamInfo | None:
    """One stored upstream, of whatever project; None if it does not exist."""
    row = Upstream.objects.select_related("project").filter(pk=upstream_id).first()
    return _row_info(row, shadowed=False) if row else None


def find_endpoint(*, actor: Actor, project_id: int, upstream_id: int) -> Endpoint | None:
    """One stored upstream as it would be called, also a disabled one: to test it. With its key.

    None where the project does not see it. Raises Forbidden.
    """
    require(actor, Right.MANAGE_UPSTREAMS, project_id=project_id)
    row = _visible(project_id).filter(pk=upstream_id).first()
    return _endpoint(row) if row else None


def forget_cache() -> None:
    """Drop what is cached: for tests that replace the whole database or the environment."""
    with _lock:
        _cache.clear()


def _revision() -> tuple[datetime | None, int]:
    newest = Upstream.objects.aggregate(newest=Max("updated_at"), count=Count("pk"))
    return (newest["newest"], newest["count"])


def _visible(project_id: int | None) -> QuerySet[Upstream]:
    visible = Q(project__isnull=True)
    if project_id is not None:
        visible |= Q(project_id=project_id)
    return Upstream.objects.select_related("project").filter(visible).order_by("id")


def _read_endpoints(project_id: int | None) -> tuple[Endpoint, ...]:
    ruling = _ruling(_visible(project_id))
    rows = sorted(ruling.values(), key=lambda row: (row.project_id is None, row.name))
    found = [_endpoint(row) for row in rows if row.enabled]
    found += [each for each in conf.environment_upstreams() if each.name not in ruling]
    return tuple(found)


def _ruling(rows: QuerySet[Upstream] | list[Upstream]) -> dict[str, Upstream]:
    """The row that counts, of each name: the project's own, else the global one."""
    ruling: dict[str, Upstream] = {}
    for row in rows:
        if row.name not in ruling or row.project_id is not None:
            ruling[row.name] = row
    return ruling


def _endpoint(row: Upstream) -> Endpoint:
    return Endpoint(
        name=row.name,
        kind=ProviderKind(row.kind),
        base_url=row.base_url.rstrip("/"),
        api_key=_key(row),
        models=_models(row),
        allow_private=row.allow_private,
        source=EndpointSource.ADMIN,
        read_timeout_s=float(row.read_timeout_s),
        formats=_formats(row),
        # A variable's key is the operator's, who may lend it to several.
        is_shared=row.project_id is None or bool(row.key_variable),
    )


def _key(row: Upstream) -> str | None:
    if row.key_variable:
        return conf.environment_key(row.key_variable)
    return unseal(row.key_encrypted) if row.key_encrypted else None


def _models(row: Upstream) -> tuple[str, ...]:
    lines = (line.strip() for line in row.models_served.splitlines())
    return tuple(dict.fromkeys(line for line in lines if line))


def _formats(row: Upstream) -> tuple[WireFormat, ...]:
    """Words of a newer release are left out."""
    return tuple(each for each in WireFormat if each.value in row.formats.split())


def _row_info(row: Upstream, *, shadowed: bool) -> UpstreamInfo:
    has_key = _key(row) is not None
    return UpstreamInfo(
        id=row.pk,
        name=row.name,
        kind=ProviderKind(row.kind),
        formats=_formats(row),
        base_url=shown_url(row.base_url),
        project=row.project.slug if row.project else None,
        source=EndpointSource.ADMIN,
        key_place=_place(row),
        key_variable=row.key_variable,
        has_key=has_key,
        models=_models(row),
        allow_private=row.allow_private,
        read_timeout_s=float(row.read_timeout_s),
        enabled=row.enabled,
        shadowed=shadowed,
        problem=_problem(row, has_key=has_key),
        updated_at=row.updated_at,
    )


def _place(row: Upstream) -> KeyPlace:
    if row.key_variable:
        return KeyPlace.VARIABLE
    return KeyPlace.STORED if row.key_encrypted else KeyPlace.NONE


def _problem(row: Upstream, *, has_key: bool) -> str | None:
    problem = url_problem(row.base_url, allow_private=row.allow_private)
    if problem is None and not has_key:
        if row.key_variable:
            return f"The variable {row.key_variable} is not set where the server runs."
        if row.key_encrypted:
            return _ENTER_AGAIN
    return problem


def _environment_info(endpoint: Endpoint, *, shadowed: bool) -> UpstreamInfo:
    variable = conf.environment_key_variable(endpoint)
    return UpstreamInfo(
        id=None,
        name=endpoint.name,
        kind=endpoint.kind,
        formats=endpoint.formats,
        base_url=shown_url(endpoint.base_url),
        project=None,
        source=EndpointSource.ENVIRONMENT,
        key_place=KeyPlace.VARIABLE if variable else KeyPlace.NONE,
        key_variable=variable,
        has_key=endpoint.api_key is not None,
        models=endpoint.models,
        allow_private=endpoint.allow_private,
        read_timeout_s=endpoint.read_timeout_s,
        enabled=True,
        shadowed=shadowed,
        problem=_environment_problem(endpoint),
        updated_at=None,
    )


def _environment_problem(endpoint: Endpoint) -> str | None:
    problem = url_problem(endpoint.base_url, allow_private=endpoint.allow_private)
    return with_setting(problem, PRIVATE_SETTING) if problem else None
