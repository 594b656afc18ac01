"""Whether a client that somebody has just set up has come through, and what is missing if not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from helmdash.queries.access.wrong_addresses import KnockInfo, turned_away
from helmdash.queries.calls.calls import CallView, view
from helmdash.queries.lists.by_value import first_values
from helmdash.records.models import Call

# A client may make a title and other side calls before its first turn.
_NEWEST = 20


class ConnectState(StrEnum):
    """How far a client has come."""

    WAITING = "waiting"
    CONNECTED = "connected"
    REFUSED = "refused"


class Missing(StrEnum):
    """What keeps a client that was heard of from being connected."""

    TOKENS = "tokens"  # its calls come, and tell no prompt tokens
    FAILED = "failed"  # its calls come, and fail
    ADDRESS = "address"  # it asks at an address that is not there
    KEY = "key"  # its key is refused
    OTHER_CLIENT = "other_client"  # a call came of another program


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """The state of a client, and what it is told by.

    call: the one that shows it; None where none came. knock: the request that was turned away.
    seen_before: when the newest call of this client came before it was looked for.
    """

    state: ConnectState
    missing: Missing | None = None
    call: CallView | None = None
    knock: KnockInfo | None = None
    seen_before: datetime | None = None


def connection(
    *,
    project_id: int,
    clients: Sequence[str],
    since: datetime,
    sees_refusals: bool,
    exporters: Sequence[str] = (),
) -> Connection:
    """What came of the programs of these names since a moment. At most four queries, and one more
    for each name but the first.

    exporters: what else a request may be called that was turned away. sees_refusals: whoever looks
    may see those, of whatever project.
    """
    own = _newest(project_id, clients, since)
    found = next((call for call in own if call.health.prompt_tokens is not None), None)
    if found is not None:
        return Connection(state=ConnectState.CONNECTED, call=found)
    if own:
        newest = own[0]
        if newest.cause is not None or newest.status == "error":
            return Connection(state=ConnectState.REFUSED, missing=Missing.FAILED, call=newest)
        return Connection(state=ConnectState.WAITING, missing=Missing.TOKENS, call=newest)
    if sees_refusals:
        knock = next(iter(turned_away(clients=[*clients, *exporters], since=since)), None)
        if knock is not None:
            missing = Missing.KEY if knock.is_key else Missing.ADDRESS
            return Connection(state=ConnectState.REFUSED, missing=missing, knock=knock)
    other = next(iter(_newest(project_id, None, since)), None)
    if other is not None:
        return Connection(state=ConnectState.WAITING, missing=Missing.OTHER_CLIENT, call=other)
    before = Call.objects.filter(project_id=project_id, client_name__in=clients)
    told = first_values(before.order_by("-started_at", "-id"), "started_at", 1, ["started_at"])
    return Connection(state=ConnectState.WAITING, seen_before=told[0][0] if told else None)


def _newest(
    project_id: int, clients: Iterable[str] | None, since: datetime
) -> tuple[CallView, ...]:
    rows = Call.objects.filter(project_id=project_id, started_at__gte=since)
    if clients is not None:
        rows = rows.filter(client_name__in=list(clients))
    rows = rows.select_related("conversation").order_by("-started_at", "-id")
    return tuple(view(row) for row in rows[:_NEWEST])
