"""Which program and which conversation a request names, whichever way it does."""

from __future__ import annotations

from helmdash.core.agents.names import agent_name, foreign_name
from helmdash.core.agents.reading import agent_call, is_no_agents
from helmdash.core.conversations.clients import client_by_prompt
from helmdash.gateway.requests.exchange import Exchange
from helmdash.gateway.requests.options import conversation_of
from helmdash.gateway.requests.request_facts import request_facts
from helmdash.providers.wire import ChatRequest, Role, Text


def name_client(exchange: Exchange, chat: ChatRequest) -> None:
    """Note the agent that its own system prompt names, where its user agent is a library's."""
    exchange.client = client_by_prompt(exchange.client, opening_prompt(chat))


def opening_prompt(chat: ChatRequest) -> str:
    """The text that the first message begins with, if that is the system's; else ""."""
    first = next(iter(chat.messages), None)
    if first is None or first.role is not Role.SYSTEM or not first.parts:
        return ""
    part = first.parts[0]
    return part.text if isinstance(part, Text) else ""


def name_conversation(exchange: Exchange, chat: ChatRequest) -> None:
    """Note what the request says of its conversation: our own headers first, then what its program
    says by itself, then its metadata.

    A header of ours is often set once for a whole program: its sub-agents are parts of the
    conversation it names, and no turns of it.
    """
    client = exchange.client.name if exchange.client is not None else None
    agent = None
    if not is_no_agents(exchange.headers, chat.metadata, client=client):
        agent = agent_call(exchange.headers, request_facts(chat), client=client)
    exchange.agent = agent
    own = exchange.options.conversation
    exchange.parent = exchange.options.parent
    told = conversation_of(chat.metadata) or (
        foreign_name(chat.conversation) if chat.conversation else None
    )
    if agent is None:
        exchange.conversation = own or told
    elif own is None:
        exchange.conversation = agent.conversation
        exchange.parent = exchange.parent or agent.parent
        if agent.conversation is None and agent.parent is None:
            exchange.conversation = told
    elif agent.parent is not None and exchange.options.parent is None:
        exchange.conversation = agent_name(own, agent.part) if agent.part else None
        exchange.parent = own
