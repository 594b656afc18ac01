"""The record of a call whose texts could not be put together."""

from __future__ import annotations

from time import perf_counter_ns

from helmdash.core.calls.capture import Capture
from helmdash.core.calls.routes import CallRoute
from helmdash.gateway.requests.exchange import NS_PER_MS, Exchange


def bare_capture_of(exchange: Exchange) -> Capture:
    """What is certain of this call whatever its request and reply hold. Never raises."""
    return Capture(
        id=exchange.call_id,
        model=exchange.model,
        budget_model=exchange.budget_model,
        trial=exchange.told_trial,
        conversation=exchange.conversation,
        parent=exchange.parent,
        lane=exchange.told_lane,
        context=exchange.agent.context if exchange.agent is not None else None,
        routes=(CallRoute.GATEWAY,),
        provider=exchange.endpoint.name if exchange.endpoint else None,
        pack=exchange.options.pack,
        purpose=exchange.told_purpose,
        correlation_id=exchange.options.correlation_id,
        upstream_model=exchange.upstream_model,
        latency_ms=(perf_counter_ns() - exchange.started_ns) // NS_PER_MS,
        status=exchange.status,
        http_status=exchange.http_status,
        started_at=exchange.started_at,
        metadata={
            "gateway": exchange.route.client.name,
            "not_stored": "HelmDash failed on what the call holds; see its log",
        },
    )
