"""The official SDK's server, told what tools and resources there are. Only this module imports it.

Loading the SDK takes half a second and 30 MiB, so nobody imports this module before the first
request of an MCP client. The low-level server is used: its schemas are ours, so that the list of
tools stays small, and it leaves the logging alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, cast

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    TextContent,
    TextResourceContents,
)
from mcp_types import Resource as ResourceShape
from mcp_types import ResourceTemplate as TemplateShape
from mcp_types import Tool as ToolShape
from sse_starlette.sse import AppStatus
from starlette.requests import Request

from helmdash import __version__
from helmdash.doors.bodies.jsontext import dump_json
from helmdash.mcp.problems import ToolProblem, forbidden, problem_of
from helmdash.mcp.resources import HEALTH_TEMPLATE, MIME_TYPE, RESOURCES, read_resource
from helmdash.mcp.tools import BY_NAME, TOOLS
from helmdash.mcp.visit import VISIT_KEY, Visit

Context = ServerRequestContext[Any, Request]

_INSTRUCTIONS = (
    "HelmDash knows the context budgets of models and how full conversations are. Ask `plan` or "
    "`route` which tools serve an intent, `fit` for a catalog that a model can take, and report "
    "calls with `record_call`. Before a context is full, write down what matters with "
    "`add_reminder`; `clear_mind` then begins anew with it."
)
# Errors of resources; tools tell theirs in their results. Anything that JSON-RPC has no code for
# has the HTTP status, which is outside of the range that JSON-RPC keeps for itself.
_CODES = {"forbidden": 403, "not_found": INVALID_PARAMS, "unavailable": 503}


def build_manager(*, limit_bytes: int, streams: bool) -> StreamableHTTPSessionManager:
    """One of the two ways to answer: with a stream where there is progress to tell, or plainly."""
    return StreamableHTTPSessionManager(
        app=_server(),
        json_response=not streams,
        stateless=True,
        max_request_body_size=limit_bytes,
        # The door has checked host and origin, by the hosts that the whole server answers to.
        security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )


def let_streams_end() -> None:
    """When the server is to stop, answers under way get the time that all others get.

    The library that writes the streams would cut them off at once, in the middle of a plan.
    """
    AppStatus.enable_automatic_graceful_drain = False


@cache
def _server() -> Server[Any]:
    schemas = {tool.name: tool.schema for tool in TOOLS}
    return Server(
        "helmdash",
        title="HelmDash",
        version=__version__,
        instructions=_INSTRUCTIONS,
        get_tool_input_schema=schemas.get,
        on_list_tools=_list_tools,
        on_call_tool=_call_tool,
        on_list_resources=_list_resources,
        on_list_resource_templates=_list_templates,
        on_read_resource=_read_resource,
    )


async def _list_tools(context: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
    return ListToolsResult(
        tools=[
            ToolShape(name=tool.name, description=tool.description, input_schema=tool.schema)
            for tool in TOOLS
        ]
    )


async def _call_tool(context: Context, params: CallToolRequestParams) -> CallToolResult:
    tool = BY_NAME.get(params.name)
    if tool is None:
        known = ", ".join(BY_NAME)
        raise MCPError(
            INVALID_PARAMS, f"There is no tool {params.name[:100]!r}. There are {known}."
        )
    visit = _visit(context)

    async def report(percent: int, sentence: str) -> None:
        await context.session.report_progress(percent, 100, sentence)

    try:
        if not visit.caller.may(tool.scope):
            raise forbidden(visit.caller.name, tool.scope)
        return _result(await tool.run(visit, params.arguments or {}, report))
    except Exception as error:
        return _result(problem_of(error).body, is_error=True)


def _result(body: Mapping[str, object], *, is_error: bool = False) -> CallToolResult:
    """The body as structured content, and the same JSON as text for clients that read only that."""
    text = dump_json(body).decode()
    return CallToolResult(
        content=[TextContent(type="text", text=text)],
        structured_content=json.loads(text),
        is_error=is_error,
    )


async def _list_resources(
    context: Context, params: PaginatedRequestParams | None
) -> ListResourcesResult:
    return ListResourcesResult(
        resources=[
            ResourceShape(
                uri=each.uri, name=each.name, description=each.description, mime_type=MIME_TYPE
            )
            for each in RESOURCES
        ]
    )


async def _list_templates(
    context: Context, params: PaginatedRequestParams | None
) -> ListResourceTemplatesResult:
    template = TemplateShape(
        uri_template=HEALTH_TEMPLATE.uri,
        name=HEALTH_TEMPLATE.name,
        description=HEALTH_TEMPLATE.description,
        mime_type=MIME_TYPE,
    )
    return ListResourceTemplatesResult(resource_templates=[template])


async def _read_resource(context: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
    try:
        text = dump_json(await read_resource(_visit(context), params.uri)).decode()
    except Exception as error:
        raise _error(problem_of(error), params.uri) from None
    contents = TextResourceContents(uri=params.uri, mime_type=MIME_TYPE, text=text)
    return ReadResourceResult(contents=[contents])


def _error(problem: ToolProblem, uri: str) -> MCPError:
    code = _CODES.get(problem.word, INTERNAL_ERROR)
    return MCPError(code, problem.message, {**problem.body, "uri": uri[:200]})


def _visit(context: Context) -> Visit:
    """Who asks: the door found it out and put it into the request's scope."""
    assert context.request is not None  # over HTTP there always is one
    return cast("Visit", context.request.scope[VISIT_KEY])
