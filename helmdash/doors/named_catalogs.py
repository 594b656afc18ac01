"""Small requests that name a large catalog are as much work as those that bring one along.

So what a request names is weighed, too: by the catalog's entries as they are stored, which costs a
query or two, at most once a second for each name. Nothing is asked for any other request.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from time import monotonic
from urllib.parse import parse_qs

import orjson
from django.conf import settings
from django.db import DatabaseError

from helmdash.doors.asgi import Scope
from helmdash.heavy import forwarder_of
from helmdash.operations.database.sqlite_file import thread_connection
from helmdash.queries.fitting import catalog as catalogs
from helmdash.queries.fitting.catalog import CatalogSize

log = logging.getLogger(__name__)

# An entry has about nine strings: as many as make a body heavy (helmdash.heavy.weighing). Reading
# and indexing so many takes 160 ms, once; ranking them 2 ms, each time.
_HEAVY_ENTRIES = 1_000
_HEAVY_BYTES = 1024 * 1024
# "Live everywhere within a second", as what a key may do.
_FRESH_S = 0.9
# A database that does not respond is told of by whoever works on the request.
_PATIENCE_S = 0.5
_MOST_NAMES = 1_000
# Django refuses a form with more of them.
_MOST_FIELDS = settings.DATA_UPLOAD_MAX_NUMBER_FIELDS

# By path: where a body names a catalog, or means the project's current one.
_API_PLACES = frozenset(f"/api/v1/{name}" for name in ("fit", "rank", "plan", "route"))
_API_CATALOG = "/api/v1/catalogs/"
_TOOLS = frozenset({"fit", "plan", "route"})
_PAGE_FORMS = frozenset({"/try/fit/", "/try/plan/", "/try/route/"})
CATALOG_PAGE = "/catalog/"
# The one resource of MCP that is a whole catalog.
_GUIDE = "helmdeck://routing-guide"

# The catalog that counts where a request names none.
_CURRENT = ""

Name = tuple[int | None, str]
"""The project's id, None for all of them; and the catalog's name."""


class NamedCatalogs:
    """How large the catalogs are that requests name; one for each process, on one event loop."""

    def __init__(self, read: Callable[[int | None, str], CatalogSize] | None = None) -> None:
        self._read = read or _read
        self._known: OrderedDict[Name, tuple[float, bool]] = OrderedDict()

    async def is_large(self, scope: Scope, body: bytes, *, project_id: int | None) -> bool:
        """Whether a request works with a stored catalog that is large.

        project_id: the one of its key; None on a page, which may be about any project.
        """
        if forwarder_of(scope) is None:
            return False
        name = _named(scope["method"], scope["path"], body)
        return name is not None and await self._is_large((project_id, name))

    async def _is_large(self, name: Name) -> bool:
        known = self._known.get(name)
        if known is not None and monotonic() - known[0] < _FRESH_S:
            return known[1]
        try:
            size = await asyncio.wait_for(asyncio.to_thread(self._read, *name), _PATIENCE_S)
        except (TimeoutError, DatabaseError) as error:
            log.debug("the size of a catalog is not known: %s", type(error).__name__)
            return known is not None and known[1]
        found = size.entries > _HEAVY_ENTRIES or size.bytes > _HEAVY_BYTES
        self._known[name] = (monotonic(), found)
        self._known.move_to_end(name)
        if len(self._known) > _MOST_NAMES:
            self._known.popitem(last=False)
        return found


def _read(project_id: int | None, name: str) -> CatalogSize:
    with thread_connection():
        return catalogs.size(project_id=project_id, name=name or None)


def _named(method: str, path: str, body: bytes) -> str | None:
    """The stored catalog that a request works with; None for none, or where it is unreadable."""
    if method == "GET":
        if path == CATALOG_PAGE:
            return _CURRENT
        return path.removeprefix(_API_CATALOG) or None if path.startswith(_API_CATALOG) else None
    if method != "POST":
        return None
    if path in _API_PLACES:
        return _in_members(_parsed(body))
    if path in _PAGE_FORMS:
        return _in_form(body)
    return _in_message(_parsed(body)) if path.rstrip("/") == "/mcp" else None


def _in_members(given: object) -> str | None:
    if not isinstance(given, dict) or given.get("catalog") is not None:
        return None
    name = given.get("catalog_name")
    return name if isinstance(name, str) else _CURRENT


def _in_form(body: bytes) -> str | None:
    """Of a page's form: a catalog that was pasted comes before a name. None also for one with more
    fields than are taken: each is read, which takes a quarter of a second for a MiB of them."""
    try:
        given = parse_qs(body.decode("latin-1"), max_num_fields=_MOST_FIELDS)
    except ValueError:
        return None
    return None if given.get("catalog") else given.get("catalog_name", [_CURRENT])[0].strip()


def _in_message(message: object) -> str | None:
    """Of a JSON-RPC message: in a tool's arguments, or as the resource that it is."""
    params = message.get("params") if isinstance(message, dict) else None
    if not isinstance(message, dict) or not isinstance(params, dict):
        return None
    name = params.get("name")
    # Asked before the message is checked: a list as a name is no key of anything.
    if message.get("method") == "tools/call" and isinstance(name, str) and name in _TOOLS:
        return _in_members(params.get("arguments"))
    reads = message.get("method") == "resources/read" and params.get("uri") == _GUIDE
    return _CURRENT if reads else None


def _parsed(body: bytes) -> object:
    try:
        value: object = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return value
