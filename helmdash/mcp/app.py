"""The MCP face as an ASGI application: who asks, what for, and in which way it is answered."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Mapping
from functools import partial
from time import monotonic
from typing import Any

from helmdash.doors.asgi import Disconnected, Receive, Scope, Send, headers_of, note_known, replay
from helmdash.doors.body import Bodies
from helmdash.doors.callers.directory import Directory
from helmdash.doors.callers.keys import admit, admit_again, owner_of
from helmdash.doors.callers.proxies import address_of
from helmdash.doors.faults import BadBody, Fault
from helmdash.doors.heavy import is_handed_on
from helmdash.doors.named_catalogs import NamedCatalogs
from helmdash.doors.patience import DatabaseWatch
from helmdash.doors.validation import read_object
from helmdash.mcp.address import check_address
from helmdash.mcp.refusals import (
    ToolRefusal,
    malformed,
    not_a_request,
    refusal_of,
    send_refusal,
    unavailable,
    wrong_method,
)
from helmdash.mcp.threads import Threads
from helmdash.mcp.tools import BY_NAME
from helmdash.mcp.transport import McpTransport
from helmdash.mcp.visit import VISIT_KEY, Visit
from helmdash.queries.access.access import Caller
from helmdash.upstream.sharing import shared_of

log = logging.getLogger(__name__)

# Two cores have no use for more.
_WORK_THREADS = 4


class McpApp:
    """`/mcp`: Streamable HTTP by the official SDK, behind a key of HelmDash.

    One for each process, made on the event loop that it works on.
    """

    def __init__(
        self, *, directory: Directory, bodies: Bodies, watch: DatabaseWatch, limit_bytes: int
    ) -> None:
        self._directory = directory
        self._watch = watch
        self._bodies = bodies
        self._catalogs = NamedCatalogs()
        self._threads = Threads(_WORK_THREADS, "mcp")
        self._transport = McpTransport(limit_bytes)

    async def start(self) -> None:
        """Nothing to do before the first request: see helmdash.mcp.server."""

    async def stop(self) -> None:
        """Give up what is still under way."""
        await self._transport.stop()
        self._threads.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        headers = headers_of(scope)
        try:
            since = monotonic()
            key_context = await admit(self._directory, headers, address=address_of(scope))
            note_known(scope)
            check_address(headers)
            if scope["method"] != "POST":
                raise wrong_method()
            owner = owner_of(key_context)
            async with self._bodies.reading(headers, receive, owner=owner) as body:
                key_context = await admit_again(
                    self._directory, headers, key_context=key_context, since=since
                )
                project = key_context.caller.project.id
                names_much = partial(self._catalogs.is_large, scope, body, project_id=project)
                if await is_handed_on(scope, body, receive, send, names_much=names_much):
                    return
                asked = _parse(body)
                visit = await self._visit(scope, key_context.caller)
                streams = _may_stream(headers, asked)

                def handle(out: Send) -> Awaitable[None]:
                    return self._transport.handle(
                        {**scope, VISIT_KEY: visit}, replay(body, receive), out, streams=streams
                    )

                await self._watch.run(handle, send)
        except ToolRefusal as refusal:
            await send_refusal(send, refusal)
        except Fault as fault:
            await send_refusal(send, refusal_of(fault))
        except Disconnected:
            return

    async def _visit(self, scope: Scope, caller: Caller) -> Visit:
        """What tools may use, once the server runs. Raises Refusal (503)."""
        try:
            await self._transport.ready()
        except Exception:
            log.exception("the MCP server could not be loaded")
            raise unavailable("The MCP server could not be loaded.") from None
        shared = shared_of(scope)
        if shared is None:
            raise RuntimeError("McpApp works only in the house that asgi.py builds")
        return Visit(caller=caller, threads=self._threads, shared=shared)


def _parse(body: bytes) -> dict[str, Any]:
    """The JSON-RPC message of a body, as far as the door looks at it. Raises Refusal (400)."""
    try:
        asked = read_object(body)
    except BadBody as error:
        raise malformed(str(error)) from None
    fault = _fault(asked)
    if fault is not None:
        raise not_a_request(f"Send one JSON-RPC 2.0 request or notification: {fault}.")
    return asked


def _fault(asked: Mapping[str, Any]) -> str | None:
    """What keeps an object from being a request or a notification. (An answer is neither: this
    server never asks.) The SDK would say it, too, but in its library's words."""
    if asked.get("jsonrpc") != "2.0":
        return '`jsonrpc` has to be "2.0"'
    if not isinstance(asked.get("method"), str):
        return "`method` has to be a string"
    if not isinstance(asked.get("params", {}), Mapping):
        return "`params` has to be an object"
    # true is no number
    if type(asked.get("id", 0)) not in (str, int):
        return "`id` has to be a string or a whole number"
    return None


def _may_stream(headers: Mapping[bytes, bytes], asked: Mapping[str, Any]) -> bool:
    """Whether the answer may come as a stream: a slow tool, and a client that can read one.

    A stream carries progress, and keeps the connection alive while a model thinks. Everything
    else is answered at once, with plain JSON.
    """
    params = asked.get("params")
    name = params.get("name") if isinstance(params, Mapping) else None
    tool = BY_NAME.get(name) if isinstance(name, str) else None
    is_slow = asked.get("method") == "tools/call" and tool is not None and tool.is_slow
    accepted = headers.get(b"accept", b"").lower()
    takes_json = b"application/json" in accepted
    return is_slow and takes_json and b"text/event-stream" in accepted
