"""Where calls lie, by the ids they are known by: no statement looks for a name among the calls.

Calls are kept by time, so that a search by anything else would ask every partition; the table of
names gives number and time, which lead to one.
"""

from __future__ import annotations

import json
import operator
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, Literal, NamedTuple

from django.db import connection
from django.db.models import (
    DurationField,
    ExpressionWrapper,
    F,
    Q,
    QuerySet,
    TextField,
    Value,
)
from django.db.models.expressions import Col
from django.db.models.lookups import Exact, Lookup

from helmdash.records.models import Call, CallName, CallPayload, Conversation
from helmdash.records.querysets import in_partitions, moment, starts_with
from helmdash.records.replica import connection_for
from helmdash.records.statements.bulk import insert_rows, upsert_rows
from helmdash.records.statements.direct import Question, ask_prepared, each_of, is_postgres
from helmdash.records.statements.many_ids import one_of

# A story of a plan has some ten calls, a long session of an agent's some hundreds: a millisecond.
MOST_OF_ID: Final = 1_000

# Before the id of a reply: it tells who may read the reply, so no id that a client gives a call may
# begin so. No door takes control characters in one (doors.bodies.fields.ClientId), and ids from
# OTLP begin with a word of ours.
_REPLY: Final = "\x1freply:"
# The same of an account of the project's own. Its server is the project's choice and may say any
# id, so what it says proves nothing of an account that others share.
_OWN_REPLY: Final = "\x1freply-own:"


class Place(NamedTuple):
    """The key of a call, whatever its project."""

    call_id: int
    started_at: datetime


def find_places(project_id: int, names: Collection[str]) -> dict[str, Place]:
    """Where the calls of these names lie; names that the project does not have are left out. One
    query."""
    if not names:
        return {}
    found = ask_prepared(*places_question(project_id, names), of=connection_for(CallName))
    return {name: Place(pk, moment(at)) for name, pk, at in found}


def places_question(project_id: int, names: Collection[str]) -> Question:
    """What `find_places` asks."""
    # Every transaction that records asks it: without the ORM.
    table, columns = CallName._meta.db_table, "name, call_id, started_at"
    of_project = "project_id = %s"
    return each_of(columns, table, of_project, [project_id], key="name", values=[*names])


def row_to_name(call: Call) -> dict[str, Any]:
    """What `add_names` needs of a call."""
    return {
        "id": call.pk,
        "project_id": call.project_id,
        "name": call.name,
        "started_at": call.started_at,
        "conversation_id": call.conversation_id,
        "generation": None,
        "correlation_id": None,
    }


def find_place_rows(project_id: int, names: Collection[str]) -> dict[str, dict[str, Any]]:
    """What `add_names` needs of the calls of these names, by the names; those that the project does
    not have are left out. One query."""
    rows = CallName.objects.filter(project_id=project_id, name__in=list(names)).order_by()
    return {
        name: {
            "id": pk,
            "project_id": project_id,
            "name": name,
            "started_at": at,
            "conversation_id": conversation,
            "generation": None,
            "correlation_id": None,
        }
        for name, pk, at, conversation in rows.values_list(
            "name", "call_id", "started_at", "conversation_id"
        )
    }


def find_conversations(project_id: int, names: Collection[str]) -> dict[str, int]:
    """The conversations of the calls of these names, by number; names that the project does not
    have, or whose calls have none, are left out. One query."""
    rows = CallName.objects.filter(project_id=project_id, name__in=list(names)).order_by()
    found = rows.values_list("name", "conversation_id")
    return {name: number for name, number in found if number is not None}


def find_beginning(
    project_id: int, text: str, most: int, *, of: Literal["name", "correlation_id"] = "name"
) -> list[Place]:
    """Where calls lie whose name (or correlation id) begins with the text, `most` at most, in no
    order. One query."""
    # In no order: PostgreSQL's index for beginnings has none, and would sort them all.
    rows = CallName.objects.filter(starts_with(of, text), project_id=project_id).order_by()
    return places_of(rows, "call_id", most)


def places_of(rows: QuerySet[Any], number: Literal["id", "call_id"], most: int) -> list[Place]:
    """Where the calls of some rows lie, `most` at most. number: the column that has theirs. One
    query."""
    # Read as it lies there: for 10,000 times Django takes four times as long as for their rows.
    at = ExpressionWrapper(F("started_at"), output_field=TextField())
    return [Place(pk, moment(told)) for pk, told in rows.values_list(number, at)[:most]]


def find_correlated(
    project_id: int, correlation_ids: Collection[str], most: int, *, oldest: bool = False
) -> list[Place]:
    """Where the newest calls of some correlation ids lie (or the oldest), `most` at most. One
    query.

    Of each id MOST_OF_ID calls are read, since a client may give all its calls the same: of one
    that more share, `oldest` has the first in the order of the index, which is nearly that of their
    arrival; asked for the newest it is left out, for those it would have to sort all.
    """
    ids = sorted(set(correlation_ids))
    if not ids:
        return []
    of_one = (
        f"SELECT * FROM (SELECT correlation_id, call_id, started_at FROM {CallName._meta.db_table}"
        " WHERE project_id = %s AND correlation_id = %s LIMIT %s) AS of_one"
    )
    asked = [value for each in ids for value in (project_id, each, MOST_OF_ID + 1)]
    with connection_for(CallName).cursor() as cursor:
        cursor.execute(" UNION ALL ".join([of_one] * len(ids)), asked)
        rows = cursor.fetchall()
    shared = Counter(each for each, _, _ in rows)
    found = [Place(pk, moment(at)) for each, pk, at in rows if oldest or shared[each] <= MOST_OF_ID]
    sign = 1 if oldest else -1
    found.sort(key=lambda place: (sign * place.started_at.timestamp(), place.call_id))
    return found[:most]


def find_generation(project_id: int, conversation: str, generation: int) -> list[Place]:
    """Where the main call of this number lies, none or one. One query."""
    named = Conversation.objects.filter(project_id=project_id, name=conversation)
    rows = CallName.objects.filter(
        project_id=project_id, conversation_id__in=named.values("id"), generation=generation
    )
    return [Place(*found) for found in rows.values_list("call_id", "started_at")]


def find_within(project_id: int, spans: Collection[tuple[int, int, int]]) -> list[Place]:
    """Where the main calls of these stretches lie: of a conversation by its key, from one
    generation to another, both included. One query, which PostgreSQL plans as for one stretch."""
    if not spans:
        return []
    source = (
        "unnest(%s::bigint[], %s::bigint[], %s::bigint[]) AS w(conversation_id, first, latest)"
        if is_postgres()
        else "(SELECT value ->> 0 AS conversation_id, value ->> 1 AS first, value ->> 2 AS latest"
        " FROM json_each(%s)) AS w"
    )
    # In this order: from each stretch into the index.
    statement = (
        f"SELECT DISTINCT n.call_id, n.started_at FROM {source}"
        f" CROSS JOIN {CallName._meta.db_table} n WHERE n.project_id = %s"
        " AND n.conversation_id = w.conversation_id AND n.generation BETWEEN w.first AND w.latest"
    )
    told = (
        [list(each) for each in zip(*spans, strict=True)]
        if is_postgres()
        else [json.dumps(list(spans))]
    )
    with connection_for(CallName).cursor() as cursor:
        cursor.execute(statement, [*told, project_id])
        return [Place(pk, moment(at)) for pk, at in cursor.fetchall()]


def calls_at(
    project_id: int, places: Iterable[Place], *, among: QuerySet[Call] | None = None
) -> QuerySet[Call]:
    """The calls that lie there (of `among`), as far as there still are any."""
    rows: QuerySet[Call] = Call.objects.all()
    found: Sequence[Place] = list(places)
    if among is not None:
        rows, found = _not_walked(among, found)
    if not found:
        return Call.objects.none()
    times = [place.started_at for place in found]
    rows = rows.filter(one_of("id", [place.call_id for place in found]), _of(project_id))
    return in_partitions(rows, min(times), max(times))


def _not_walked(
    rows: QuerySet[Call], places: Sequence[Place]
) -> tuple[QuerySet[Call], Sequence[Place]]:
    """The same rows in the same order, said so that they are looked for by the numbers of places;
    on SQLite but for their project, and their times, by which the places are narrowed instead.

    A database that may walk along a project's calls by their time, and try the numbers on each,
    does so, through all that came since.
    """
    if is_postgres():
        ordered = rows.order_by(*(_SORTED_BY.get(each, each) for each in rows.query.order_by))
        return ordered, places
    rows = rows.all()
    conditions: Sequence[Any] = rows.query.where.children
    bounds = [each for each in conditions if _is_bound(each)]
    kept = [each for each in conditions if each not in bounds and not _is_of_project(each)]
    rows.query.where.children = kept
    within = [place for place in places if all(_holds(each, place.started_at) for each in bounds)]
    return rows, within


# Times that no index has.
_SORTED_TIME: Final = F("started_at") + Value(timedelta(0), output_field=DurationField())
_SORTED_BY: Final[Mapping[Any, Any]] = {
    "started_at": _SORTED_TIME.asc(),
    "-started_at": _SORTED_TIME.desc(),
}
_COMPARED_BY: Final = {"gt": operator.gt, "gte": operator.ge, "lt": operator.lt, "lte": operator.le}


def _is_of_project(condition: object) -> bool:
    return isinstance(condition, Exact) and _is_about(condition, "project")


def _is_bound(condition: object) -> bool:
    return (
        isinstance(condition, Lookup)
        and condition.lookup_name in _COMPARED_BY
        and isinstance(condition.rhs, datetime)
        and _is_about(condition, "started_at")
    )


def _is_about(condition: Lookup[Any], field: str) -> bool:
    lhs = condition.lhs
    return isinstance(lhs, Col) and lhs.target == Call._meta.get_field(field)


def _holds(bound: Lookup[Any], at: datetime) -> bool:
    return bool(_COMPARED_BY[str(bound.lookup_name)](at, bound.rhs))


def payloads_at(project_id: int, places: Iterable[Place]) -> QuerySet[CallPayload]:
    """What hangs on the calls that lie there."""
    found = list(places)
    if not found:
        return CallPayload.objects.none()
    times = [place.started_at for place in found]
    ids = [place.call_id for place in found]
    rows = CallPayload.objects.filter(one_of("call_id", ids), _of(project_id))
    return in_partitions(rows, min(times), max(times))


def _of(project_id: int) -> Q | Exact[Any]:
    """Of a project, tried on each row: SQLite, which is told by a sample how tables are filled,
    would look for more than some hundred ids among all rows of the project."""
    return Q(project_id=project_id) if is_postgres() else Exact(F("project_id") + 0, project_id)


def find_call(project_id: int, name: str) -> QuerySet[Call]:
    """The call of this name, none or one. One query, and another once it is read."""
    return calls_at(project_id, find_places(project_id, [name]).values())


def insert_names(rows: Sequence[Mapping[str, Any]]) -> None:
    """Note the names of calls that are about to be inserted, by the attributes of their rows.

    Raises django.db.IntegrityError where a name, or a number in a conversation, is taken.
    """
    insert_rows(CallName, [name_row(row) for row in rows])


def reply_name(reply_id: str, *, is_own: bool) -> str:
    """The second name of a call whose reply its provider keeps under this id; is_own: for an
    account of the project's own."""
    return f"{_OWN_REPLY if is_own else _REPLY}{reply_id}"


def add_names(rows: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
    """Note further names of calls, each with its call's row; one that is taken stays where it is.

    They belong to the call's conversation and go with it: a name alone does not lead from a call
    to its others.
    """
    named = {
        name: {**name_row(row), "name": name, "generation": None, "correlation_id": None}
        for name, row in rows
    }
    # In one order, so that two writers with common names cannot wait for each other.
    found = [named[name] for name in sorted(named)]
    upsert_rows(CallName, found, unique=("project_id", "name"), update="name")


def name_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of CallName for a row of Call."""
    return {
        "project_id": row["project_id"],
        "name": row["name"],
        "call_id": row["id"],
        "started_at": row["started_at"],
        "conversation_id": row["conversation_id"],
        "generation": row["generation"],
        "correlation_id": row["correlation_id"] or None,
    }


def delete_names(project_id: int, places: Mapping[str, Place]) -> None:
    """Forget names whose calls are gone, or go in this transaction.

    Not one that leads elsewhere by now: another writer has brought a call of that name since.
    """
    if places:
        ids = [place.call_id for place in places.values()]
        rows = CallName.objects.filter(project_id=project_id, name__in=list(places))
        rows.filter(call_id__in=ids)._raw_delete(connection.alias)


def delete_names_of(project_id: int, times: Q, after: str, most: int) -> str | None:
    """Forget names of calls that started at some times, among the next `most` behind `after`.

    Gives the last that was looked at; None where there are no more. Along the key: times have no
    index, which every call would pay for.
    """
    rows = CallName.objects.filter(project_id=project_id, name__gt=after).order_by("name")
    last = rows.values_list("name", flat=True)[most - 1 : most].first()
    some = rows.order_by() if last is None else rows.order_by().filter(name__lte=last)
    some.filter(times)._raw_delete(connection.alias)
    return last
