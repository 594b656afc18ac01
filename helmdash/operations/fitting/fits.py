"""Fitting a catalog to a model's budget, and keeping the receipt."""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Annotated, Any

from django.db import transaction

from helmdash.answers import JsonName, Words, to_json
from helmdash.core.access.permissions import Actor, Right, require
from helmdash.core.budgets.budgets import EffectiveBudget, VariantText
from helmdash.core.catalog.catalog import Catalog, parse_catalog
from helmdash.core.catalog.schema import CatalogJson
from helmdash.core.catalog.trim import Trim
from helmdash.core.fitting.inputs import Around, FitInputs, fit_inputs
from helmdash.core.fitting.selection import PreparedCatalog, Selection, prepare
from helmdash.core.ranking.ranking import PastPlan
from helmdash.core.text.tokens import compact_json, json_bytes
from helmdash.operations.fitting.bodies import keep_body
from helmdash.operations.ids import new_id
from helmdash.operations.rollups.noting import note_fit
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.budgets import budgets
from helmdash.queries.fitting import catalog as catalogs
from helmdash.records.access.keyed_hash import hash_intent
from helmdash.records.models import Fit, Payload
from helmdash.records.statements.bulk import insert_rows

logger = logging.getLogger(__name__)

# What the planning system prompt takes until the caller says otherwise (helmdeck ADR 050).
SYSTEM_PROMPT_BYTES = 1500
# The operator hears of it when more than 30 % went (helmdeck ADR 050).
_LOGGED_SHARE = 0.30
# Inline catalogs kept prepared: one of a thousand entries takes a few megabytes.
_INLINE_KEPT = 8
_inline: dict[str, PreparedCatalog] = {}
_inline_lock = threading.Lock()


class NoCatalog(Exception):
    """There is nothing to fit: none given, none by that name, and the project has none in force."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """The catalog to send, and how."""

    fit_id: str
    catalog: CatalogJson
    trim: Annotated[Trim, JsonName("compaction")]
    budget: EffectiveBudget
    prompt_variant: VariantText
    response_format: Annotated[str, Words(("", "json_object"))]
    catalog_placement: Annotated[str, Words(("system", "user"))]


def fit_catalog(
    *,
    actor: Actor,
    project: ProjectInfo,
    model: str,
    intent: str,
    catalog: object | None,
    catalog_name: str | None,
    context: Mapping[str, object] | None,
    defaults: Mapping[str, object] | None,
    history: Sequence[PastPlan],
    caller: str,
    now: datetime,
    conversation: str | None = None,
) -> Fitted:
    """Fit a catalog (inline, by name, or with neither the project's current one) and store the
    Trim.

    Everything that will be sent counts against the budget: system prompt, catalog, defaults, intent
    and context (None: nothing). conversation: whose budget it is, where a trial runs; None: of
    none. Raises Forbidden, NoCatalog, or CatalogError naming the fields of a
    malformed one.
    """
    require(actor, Right.FIT, project_id=project.id)
    rules = budgets.table(project_id=project.id).for_conversation(conversation)
    budget = rules.lookup(model)
    prepared, name = find_catalog(project=project, catalog=catalog, name=catalog_name)
    fixed = SYSTEM_PROMPT_BYTES + len(intent.encode())
    fixed += sum(json_bytes(part) for part in (context, defaults) if part)
    inputs = FitInputs(around=(Around(fixed, fixed),))
    made = fit_inputs(
        prepared,
        inputs,
        intent=intent,
        budget=budget,
        history=history,
        clock=time.perf_counter,
    )
    fitted = _fitted(budget, made.selection, now)
    keep_fit(
        project=project,
        fitted=fitted,
        prepared=prepared,
        inputs=inputs,
        intent=intent,
        catalog_name=name,
        caller=caller,
        conversation=conversation,
        now=now,
    )
    return fitted


def find_catalog(
    *, project: ProjectInfo, catalog: object | None, name: str | None
) -> tuple[PreparedCatalog, str]:
    """A catalog made ready, and its name ("" inline): inline, by name, or with neither the
    project's current one.

    Raises NoCatalog, or CatalogError naming the fields of a malformed one.
    """
    if catalog is not None:
        return _prepare_inline(parse_catalog(catalog)), ""
    found = catalogs.find(project_id=project.id, name=name)
    if found is None:
        raise NoCatalog(
            f"there is no catalog called {name}; import it first or send `catalog`"
            if name
            else "send `catalog` or `catalog_name`: this project has no current catalog"
        )
    return catalogs.prepared(revision=found), found.name


def _prepare_inline(catalog: Catalog) -> PreparedCatalog:
    """Clients send the same catalog with every fit: it is measured and indexed once."""
    digest = catalog_digest(catalog)
    known = _inline.get(digest)
    if known is not None:
        return known
    known = prepare(catalog)
    with _inline_lock:
        if len(_inline) >= _INLINE_KEPT:
            _inline.pop(next(iter(_inline)))  # the oldest
        _inline[digest] = known
    return known


def _fitted(budget: EffectiveBudget, selection: Selection, now: datetime) -> Fitted:
    is_strict = budget.uses_json_mode
    return Fitted(
        fit_id=new_id("fit", now),
        catalog=selection.catalog,
        trim=selection.trim,
        budget=budget,
        prompt_variant=budget.prompt_variant.value,
        response_format="json_object" if is_strict else "",
        catalog_placement="system" if selection.is_stable else "user",
    )


def keep_fit(
    *,
    project: ProjectInfo,
    fitted: Fitted,
    prepared: PreparedCatalog,
    inputs: FitInputs,
    intent: str,
    catalog_name: str,
    caller: str,
    conversation: str | None,
    now: datetime,
) -> None:
    """Store the Trim of a fit, and tell the log where much was cut (helmdeck ADR 050).

    Where the project keeps texts in full, what it was made of is kept as well, so that it can be
    made again under another budget. conversation: it goes when that is erased; None: not told.
    """
    _store(project, fitted, prepared, inputs, intent, catalog_name, caller, conversation, now)
    # Nobody has to know of what nobody sent.
    if not project.is_demo:
        _log(fitted)


def _store(
    project: ProjectInfo,
    fitted: Fitted,
    prepared: PreparedCatalog,
    inputs: FitInputs,
    intent: str,
    name: str,
    caller: str,
    conversation: str | None,
    now: datetime,
) -> None:
    keeps_text = project.payload == Payload.FULL.value
    intent_sha, _ = hash_intent(project.id, intent)
    body = compact_json(prepared.catalog.raw)
    digest = _digest(body)
    if keeps_text and not name:
        keep_body(project_id=project.id, digest=digest, body=body, now=now)
    row = {
        "project_id": project.id,
        "name": fitted.fit_id,
        "model": fitted.budget.model[:255],
        "intent": intent if keeps_text else "",
        "intent_sha": intent_sha,
        "catalog_name": name,
        "catalog_digest": digest,
        "before_bytes": fitted.trim.before_bytes,
        "after_bytes": fitted.trim.after_bytes,
        "fits": fitted.trim.fits,
        "trim": to_json(fitted.trim),
        "budget": asdict(fitted.budget),
        "inputs": inputs.to_json() if keeps_text else None,
        "caller": caller,
        "conversation": conversation,
        "created_at": now,
    }
    insert_fit(row)


def insert_fit(row: Mapping[str, Any]) -> None:
    """Store a fit by the attributes of its row, and have it counted."""
    with transaction.atomic():
        # Not by the ORM: this way also stores texts that PostgreSQL would refuse (bulk.storable).
        insert_rows(Fit, [{**row, "steps": row["trim"].get("steps")}])
        note_fit(row["project_id"], row, now=row["created_at"])


def catalog_digest(catalog: Catalog) -> str:
    """SHA-256 of a catalog's compact JSON: the same bytes, the same digest."""
    return _digest(compact_json(catalog.raw))


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()


def _log(fitted: Fitted) -> None:
    trim = fitted.trim
    gone = trim.before_bytes - trim.after_bytes
    if trim.before_bytes and gone / trim.before_bytes > _LOGGED_SHARE:
        logger.info(
            "catalog trimmed by more than 30 %%: %s %s, %d to %d bytes, %s",
            fitted.fit_id,
            fitted.budget.model,
            trim.before_bytes,
            trim.after_bytes,
            ", ".join(trim.dropped),
        )
