"""Which conversation a call goes on with."""

from __future__ import annotations

from collections.abc import Callable

from helmdash.core.calls.capture import Capture
from helmdash.core.conversations.fingerprints import ChainLinks
from helmdash.core.conversations.repeated_streams import StreamRequest, mark_of
from helmdash.gateway.histories.history import History
from helmdash.gateway.requests.exchange import Exchange
from helmdash.operations.care import restart_of
from helmdash.operations.recording.inference import find_conversation


def links_of(exchange: Exchange) -> ChainLinks:
    """The traces of the request, by which its conversation is known."""
    return exchange.traces.links(reply=None, is_retry=exchange.options.is_retry)


def stream_of(exchange: Exchange, links: ChainLinks | None) -> StreamRequest | None:
    """The request, which may be for a stream that broke off. None: it is not read.

    links: its traces, where they are known already.
    """
    if exchange.request is None:
        return None
    caller = exchange.key_context.caller.name
    return StreamRequest(
        mark=lambda: mark_of(links or links_of(exchange), model=exchange.model, caller=caller),
        started_at=exchange.started_at,
        is_retry=exchange.options.is_retry,
    )


def unnamed_conversation(
    exchange: Exchange, links: ChainLinks | None, history: History
) -> str | None:
    """The stored conversation of a request that names none; None where nobody knows it.

    links: its traces, where they are known already. A client that has pruned results of tools which
    a clear dropped anyway goes on in its round.
    """
    links = links or links_of(exchange)
    if links.is_opening:
        return None
    project_id, caller = exchange.asker
    project = exchange.key_context.caller.project

    def is_cleared(name: str) -> bool:
        return history.beginning(restart_of(project=project, conversation=name)).entries > 0

    return find_conversation(
        project_id=project_id, caller=caller, links=links, is_gone_on_with=is_cleared
    )


def concerned(
    exchange: Exchange,
    conversation: str | None,
    links: ChainLinks | None,
    *,
    is_near: bool = False,
) -> Callable[[Capture], bool]:
    """Which calls may be the conversation's newest.

    links: the traces of the request, where it names no conversation: those that it may go on from,
    and those of the name (None: it is not known yet). Else those of the name, and those that may
    come to it by their own traces. is_near: as for `ChainLinks.may_go_on_from`.
    """
    if links is None:
        return lambda capture: capture.conversation in (conversation, None)
    caller = exchange.key_context.caller.name
    return lambda capture: (
        capture.conversation == conversation is not None
        or (
            capture.caller == caller
            and capture.links is not None
            and links.may_go_on_from(capture.links, is_near=is_near)
        )
    )
