"""Which conversation a request names, whichever way it does."""

from __future__ import annotations

from helmdash.core.agents.names import agent_name, foreign_name
from helmdash.core.agents.reading import agent_call, is_no_agents
from helmdash.gateway.requests.exchange import Exchange
from helmdash.gateway.requests.options import conversation_of
from helmdash.gateway.requests.request_facts import request_facts
from helmdash.providers.wire import ChatRequest


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
