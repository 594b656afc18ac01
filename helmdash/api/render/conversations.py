"""Conversations as they leave."""

from __future__ import annotations

from helmdash.api.schemas import conversations as conversation_shapes
from helmdash.operations.retention.erasing import Erased
from helmdash.queries.care import GuidanceView
from helmdash.queries.conversations import ConversationDetail, ConversationView, TimelineItem
from helmdash.shapes.rendering import remediation, standing


def conversation(value: ConversationView) -> conversation_shapes.Conversation:
    """A conversation as lists show it."""
    return {
        **standing(value),
        "started_at": value.started_at,
        "latest_at": value.latest_at,
    }


def conversation_detail(value: ConversationDetail) -> conversation_shapes.ConversationDetail:
    """A conversation with its rounds, level changes, and what is done about the level."""
    return {
        **conversation(value.conversation),
        "rounds": [
            {
                "number": item.number,
                "first_generation": item.first_generation,
                "latest_generation": item.latest_generation,
                "peak_prompt_tokens": item.peak_prompt_tokens,
                "started_at": item.started_at,
                "ended_at": item.ended_at,
                "opened_by": item.opened_by or None,
            }
            for item in value.rounds
        ],
        "remediation": {
            **remediation(value.care),
            "guidance": [_guidance_given(item) for item in value.guidance],
        },
        "level_changes": [
            {
                "generation": item.generation,
                "from_level": item.from_level,
                "to_level": item.to_level,
                "at": item.at,
            }
            for item in value.changes
        ],
    }


def _guidance_given(value: GuidanceView) -> conversation_shapes.GuidanceGiven:
    return {
        "generation": value.generation,
        "round": value.round_number,
        "action": value.action,
        "strength": value.strength,
        "remaining": value.remaining,
        "at": value.at,
        "followed_at": value.followed_at,
    }


def timeline_item(value: TimelineItem) -> conversation_shapes.TimelineItem:
    """One event."""
    return {
        "generation": value.generation,
        "round": value.round_number,
        "at": value.at,
        "event": value.event,
        "call_id": value.call_id,
        "model": value.model,
        "prompt_tokens": value.prompt_tokens,
        "level": value.level,
    }


def erased(conversation: str, value: Erased) -> conversation_shapes.Erased:
    """What an erasure took away."""
    return {
        "conversation": conversation,
        "calls": value.calls,
        "messages": value.messages,
        "fits": value.fits,
        "waiting_prompts": value.prompts,
    }
