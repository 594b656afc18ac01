"""The agents that the page Connect knows, each with its block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from helmdash.core.upstreams.endpoints import ProviderKind
from helmdash.pages.parts.agents import others
from helmdash.pages.parts.agents.claude_code import claude_code
from helmdash.pages.parts.agents.codex import codex
from helmdash.pages.parts.agents.wiring import Wiring
from helmdash.pages.parts.client_snippets import Snippet


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """A program that people run.

    clients: the names that its calls may carry (core.conversations.clients). note: what to know of
    it, as sentences. write: its blocks, the one to begin with first. vendor: whose models it asks
    for where it is told none; None: it has to be told one. exporters: the libraries that its
    telemetry comes by; a refused export names nothing else.
    """

    id: str
    name: str
    clients: tuple[str, ...]
    note: str
    write: Callable[[Wiring], tuple[Snippet, ...]]
    vendor: ProviderKind | None = None
    exporters: tuple[str, ...] = ()


def find_agent(name: str) -> Agent | None:
    """An agent by its id; None: there is none of that name."""
    return next((agent for agent in AGENTS if agent.id == name), None)


AGENTS: tuple[Agent, ...] = (
    Agent(
        id="claude-code",
        name="Claude Code",
        clients=("claude-code",),
        note="Sessions, sub-agents and compactions are recognized by themselves. Its window is set "
        "to that of the model's budget.",
        write=claude_code,
        vendor=ProviderKind.ANTHROPIC,
        exporters=("otel-otlp-exporter-javascript",),
    ),
    Agent(
        id="codex",
        name="Codex",
        clients=("codex",),
        note="It speaks the Responses API only. It compacts where the model's budget is critical.",
        write=codex,
        vendor=ProviderKind.OPENAI,
        exporters=("otel-otlp-exporter-rust",),
    ),
    Agent(
        id="gemini-cli",
        name="Gemini CLI",
        clients=("gemini-cli",),
        note="It signs in by a key from then on (~/.gemini/settings.json). It cannot be told a "
        "window: it counts on the one that it knows the model by.",
        write=others.gemini_cli,
        exporters=("otel-otlp-exporter-javascript",),
    ),
    Agent(
        id="opencode",
        name="opencode",
        clients=("opencode",),
        note="Its sessions name their conversations, sub-agents included.",
        write=others.opencode,
    ),
    Agent(
        id="pi",
        name="pi",
        clients=("pi", "openai-node"),
        note="Its sessions name their conversations. Calls of an older one may carry the name of "
        "OpenAI's JavaScript library.",
        write=others.pi,
    ),
    Agent(
        id="aider",
        name="Aider",
        clients=("aider", "litellm", "openai-python"),
        note="Its calls carry the name of the library that sends them.",
        write=others.aider,
    ),
    Agent(
        id="goose",
        name="goose",
        clients=("goose",),
        note="The address has no /v1: it adds that by itself.",
        write=others.goose,
    ),
    Agent(
        id="qwen-code",
        name="Qwen Code",
        clients=("qwen-code",),
        note="It speaks OpenAI's format.",
        write=others.qwen_code,
    ),
    Agent(
        id="cline",
        name="Cline, Roo Code, Kilo Code",
        clients=("cline", "roo-code", "kilo-code", "openai-node"),
        note="They are set up in their own settings in the editor, Cline's command by a line.",
        write=others.cline,
    ),
)
