"""What a call's prompt was not read from its provider's cache of, held against the call before."""

from __future__ import annotations

from helmdash.core.calls.tool_schemas import offered_of
from helmdash.core.evidence.cache_misses import (
    CachedCall,
    CacheMiss,
    find_cache_miss,
)
from helmdash.core.evidence.net_value import Prompt
from helmdash.core.text.messages import hash_of_key
from helmdash.records.call_names import calls_at, find_within, payloads_at
from helmdash.records.models import Call, CallPayload


def cache_miss_of(call: Call, payload: CallPayload | None) -> CacheMiss | None:
    """As `find_cache_miss` has it; None also for what is not a main call. Three queries, none where
    the call tells of no cache or is the first of its conversation."""
    conversation, generation = call.conversation_id, call.generation
    if conversation is None or generation is None or generation < 2 or call.cached_tokens is None:
        return None
    span = (conversation, generation - 1, generation - 1)
    places = find_within(call.project_id, [span])
    before = calls_at(call.project_id, places).first()
    # A name may still be there when its call is not: retention forgets it later.
    if before is None or before.prompt_tokens is None:
        return None
    beside = payloads_at(call.project_id, places).first()
    return find_cache_miss(_cached_call(before, beside), _cached_call(call, payload))


def _cached_call(call: Call, payload: CallPayload | None) -> CachedCall:
    keys = payload.message_hashes if payload else None
    return CachedCall(
        id=call.name,
        model_key=call.model_key or call.model,
        upstream_model=call.upstream_model or None,
        provider=call.provider or None,
        round_number=call.round_number,
        prompt=Prompt(
            tokens=call.prompt_tokens, cached=call.cached_tokens, written=call.cache_write_tokens
        ),
        started_at=call.started_at,
        latency_ms=call.latency_ms,
        sent_bytes=call.sent_bytes,
        estimate_tokens=call.estimate_tokens,
        tools_bytes=call.sent_tools_bytes,
        offered=offered_of(payload.offered) if payload else None,
        system_bytes=call.sent_system_bytes,
        sent_messages=call.sent_messages,
        messages=None if keys is None else tuple(map(hash_of_key, keys)),
    )
