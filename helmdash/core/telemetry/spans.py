"""Which spans are calls of a model, and what each says of its call.

Every framework wraps calls in spans of its own (agents, chains, workflows), and most repeat the
sums of what is below them: taken for calls they would count a prompt many times over. So a span is
a call where its dialect says so, and the kinds that repeat sums are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from helmdash.core.budgets.model_names import split_window
from helmdash.core.calls.capture import Capture, SentSizes, Status
from helmdash.core.calls.routes import CallRoute
from helmdash.core.telemetry.claude import claude_place
from helmdash.core.telemetry.facts import (
    AGENT,
    AGENT_CHARS,
    CONVERSATION,
    MODEL,
    UPSTREAM_MODEL,
    Place,
    attempt_of,
    call_id,
    client_of_source,
    finish_reason_of,
    http_status_of,
    placed,
    provider_of,
    status_of,
    whole_ms,
    word_in,
)
from helmdash.core.telemetry.nesting import SpanKey
from helmdash.core.telemetry.prompts import counts_of, is_claude_code
from helmdash.core.telemetry.values import (
    Attributes,
    Span,
    first_present,
    moment_of,
    number_of,
    parsed,
    text_of,
    word_of,
)

_CHAT = frozenset({"chat", "generate_content", "text_completion", "response", "message"})
_COMPLETIONS = frozenset({"chat", "completion"})
_OF_A_MODEL = frozenset({"CHAT_MODEL", "LLM"})
# The AI SDK's own spans around calls, which repeat their sums.
_AI_INNER = (".doGenerate", ".doStream")
_TEXTS = (
    "gen_ai.input.messages",
    "gen_ai.system_instructions",
    "gen_ai.tool.definitions",
    "input.value",
)
# Ids of replies, and before what the gateway notes them (ADR 45).
_REPLIES = (("msg_", "anthropic"), ("resp_", "codex"))
_NAME_CHARS = 100
_AGENTS_RUN = "invoke_agent"
# As an instrumentor's own limit of an attribute may be lower, this is only what is looked at.
_MESSAGE_CHARS = 2000
_SECONDS_OF_FIRST = (
    "gen_ai.response.time_to_first_chunk",
    "gen_ai.client.operation.time_to_first_chunk",
)


def is_call(span: Span) -> bool:
    """Whether a span is one request to a model, and no sum of several."""
    told = span.attributes
    if span.name.endswith(_AI_INNER):
        return True
    if told.get("span.type") == "llm_request":
        return True
    if span.name == "handle_responses" and told.get("gen_ai.usage.input_tokens") is not None:
        return True
    for name, kinds in _KINDS:
        kind = told.get(name)
        if isinstance(kind, str):
            return str(parsed(kind)).upper() in kinds
    operation = told.get("gen_ai.operation.name")
    if operation is not None:
        return isinstance(operation, str) and operation in _CHAT
    if "traceloop.span.kind" in told:
        return False
    asked = told.get("llm.request.type")
    if asked is not None:
        return isinstance(asked, str) and asked in _COMPLETIONS
    return _is_old_call(span)


# Whose own word on the kind of a span holds, the first that has one.
_KINDS: tuple[tuple[str, frozenset[str]], ...] = (
    ("openinference.span.kind", frozenset({"LLM"})),
    ("langfuse.observation.type", frozenset({"GENERATION"})),
    ("langsmith.span.kind", frozenset({"LLM"})),
    ("mlflow.spanType", _OF_A_MODEL),
)


def _is_old_call(span: Span) -> bool:
    """Before 1.28 of the conventions a call had no operation's name; it is a client's span with a
    model."""
    told = span.attributes
    is_sum = span.source.scope.startswith("pydantic-ai") or span.name.startswith("ai.")
    if is_sum or "gen_ai.agent.name" in told or "gen_ai.request.model" not in told:
        return False
    return span.is_client or "gen_ai.usage.prompt_tokens" in told


def capture_of(
    span: Span, above: Sequence[Span] = (), *, route: CallRoute = CallRoute.OTLP_SPAN
) -> Capture:
    """A call as its span tells it. above: the spans of its export that it lies in, the nearest
    first."""
    told = span.attributes
    provider = provider_of(told)
    counts = counts_of(told, span.source, provider=provider or "")
    place = _place(span, above)
    name, also_known = _names(span)
    client, version = client_of_source(span.source, told)
    status, code, http_status = _outcome(span)
    model, window = word_in(told, MODEL, 255), None
    answered_by = word_in(told, UPSTREAM_MODEL, 255)
    if model is not None and _is_claude(span):
        model, window = split_window(model)
    return Capture(
        id=name,
        also_known=also_known,
        inside=_inside(span, above),
        model=model or answered_by or "unknown",
        client_window=window,
        upstream_model=answered_by,
        provider=provider,
        conversation=place.conversation,
        parent=place.parent,
        lane=place.lane,
        purpose=place.purpose or "chat",
        routes=(route,),
        attempt=attempt_of(told.get("attempt")) if _is_claude(span) else 1,
        usage=counts.to_usage(),
        finish_reason=finish_reason_of(told),
        status=status,
        http_status=http_status,
        error_code=code,
        error_message=_message(span) if status != "success" else None,
        error_is_own=False,
        latency_ms=_latency(span),
        ttft_ms=_first_token(told),
        started_at=moment_of(span.start_ns),
        sent=_sent(told),
        # Attributes are cut, and JSON within JSON is longer than what was sent.
        sent_is_prompt=False,
        client_name=client,
        client_version=version,
    )


def _is_claude(span: Span) -> bool:
    return is_claude_code(span.attributes, span.source)


def _place(span: Span, above: Sequence[Span]) -> Place:
    session = session_of([span, *above])
    if _is_claude(span):
        return claude_place(span.attributes, session)
    return placed(session, agent_of(span, above))


def session_of(spans: Sequence[Span]) -> str | None:
    """The session that the nearest of some spans names, each within the next; else the resource of
    the first. None: none does."""
    found = _nearest(CONVERSATION, (each.attributes for each in spans))
    return found or word_in(spans[0].source.resource, CONVERSATION, 1024)


def agent_of(span: Span, above: Sequence[Span]) -> str | None:
    """The sub-agent that a call names, or whose run it lies in; None: none."""
    return word_in(span.attributes, AGENT, AGENT_CHARS) or _agent_around(above)


def _agent_around(above: Sequence[Span]) -> str | None:
    """The sub-agent whose run a call lies in: the nearest agent's, where that lies in another's
    run. Of the outermost the calls are the session's own, and come before its span, which has not
    ended."""
    runs = [each for each in above if each.attributes.get("gen_ai.operation.name") == _AGENTS_RUN]
    if len(runs) < 2:
        return None
    named = word_in(runs[0].attributes, AGENT, AGENT_CHARS)
    return named or word_of(runs[0].name.removeprefix(_AGENTS_RUN), AGENT_CHARS)


def _nearest(names: Iterable[str], places: Iterable[Attributes]) -> str | None:
    for place in places:
        found = word_in(place, names, 1024)
        if found is not None:
            return found
    return None


def _names(span: Span) -> tuple[str, tuple[str, ...]]:
    """The call's id, and others that other doors may know it by.

    Claude Code tells the provider's own id of a request, or the gateway's: it is the same wherever
    the call is told of. An id of a reply may be anything that a server makes up, and names no call
    by itself.
    """
    told, own = span.attributes, f"otel:{span.trace_id}:{span.span_id}"
    if _is_claude(span):
        request = word_of(told.get("request_id"), _NAME_CHARS)
        return (call_id(f"anthropic:{request}") if request else own), ()
    reply = word_of(told.get("gen_ai.response.id"), _NAME_CHARS) or ""
    for beginning, agent in _REPLIES:
        if reply.startswith(beginning):
            return own, (f"{agent}:{reply}",)
    return own, ()


def _inside(span: Span, above: Sequence[Span]) -> tuple[str, ...]:
    """Ids of spans around a call that may be told as calls, too. Claude Code's lie in none."""
    return () if _is_claude(span) else around_of(span, above)


def around_of(span: Span, above: Sequence[Span]) -> tuple[str, ...]:
    """Ids, as calls have them, of the spans around one that may be told as calls: those of its
    export that are, and the one that its export does not have."""
    found = [each.span_id for each in above if is_call(each)]
    missing = missing_around(span, above)
    if missing is not None:
        found.append(missing)
    return tuple(f"otel:{span.trace_id}:{each}" for each in found)


def missing_around(span: Span, above: Sequence[Span]) -> str | None:
    """The span around the outermost of these, which the export does not have; None: there is
    none."""
    outermost = above[-1] if above else span
    known = ("", span.span_id, *(each.span_id for each in above))
    return outermost.parent_id if outermost.parent_id not in known else None


def _outcome(span: Span) -> tuple[Status, str | None, int | None]:
    """How it ended; the error's own word; the HTTP status as far as it is told."""
    told = span.attributes
    http_status = http_status_of(first_present(told, ("http.response.status_code", "status_code")))
    kind = first_present(told, ("error.type",)) or span.exception.get("exception.type")
    is_error = span.error or str(told.get("success", "")).lower() == "false"
    # The newest conventions say so of an end that never came.
    is_error = is_error or "error.type" in told or finish_reason_of(told) == "error"
    return status_of(word_of(kind, 128), is_error=is_error, http_status=http_status)


def _message(span: Span) -> str | None:
    told = first_present(span.attributes, ("error.message", "error"))
    found = told or span.message or span.exception.get("exception.message")
    return text_of(found, _MESSAGE_CHARS)


def _latency(span: Span) -> int | None:
    if 0 < span.start_ns <= span.end_ns:
        return whole_ms((span.end_ns - span.start_ns) / 1e6)
    told = first_present(span.attributes, ("ai.response.msToFinish", "duration_ms"))
    return whole_ms(number_of(told))


def _first_token(told: Attributes) -> int | None:
    seconds = number_of(first_present(told, _SECONDS_OF_FIRST))
    if seconds is not None:
        return whole_ms(seconds * 1000)
    return whole_ms(number_of(first_present(told, ("ai.response.msToFirstChunk", "ttft_ms"))))


def _sent(told: Attributes) -> SentSizes | None:
    """Bytes of what was sent, where the program records it."""
    sizes = [
        len(value.encode("utf-8", "replace"))
        for name in _TEXTS
        if isinstance(value := told.get(name), str)
    ]
    messages = parsed(told.get("gen_ai.input.messages"))
    number = len(messages) if isinstance(messages, list) else None
    return SentSizes(bytes=sum(sizes), messages=number) if sizes else None


def above_of(span: Span, known: Mapping[SpanKey, Span]) -> list[Span]:
    """The spans of the same export that a span lies in, the nearest first."""
    found: list[Span] = []
    # Deeper nesting is a circle, or nobody's program.
    while len(found) < _MOST_ABOVE:
        parent = known.get((span.trace_id, span.parent_id))
        if parent is None or parent in found:
            break
        found.append(parent)
        span = parent
    return found


_MOST_ABOVE = 64
