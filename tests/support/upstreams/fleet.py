"""The simulated vendors, and one more server that nobody may ever be sent to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.support.processes import free_port
from tests.support.upstreams.anthropic import AnthropicServer
from tests.support.upstreams.gemini import GeminiServer
from tests.support.upstreams.http import Exchange, Server
from tests.support.upstreams.ollama import OllamaServer
from tests.support.upstreams.openai import OpenAIServer
from tests.support.upstreams.responses import ResponsesServer

# Marked, so that finding one anywhere else says where it came from.
KEYS = {
    "openai": "sk-upstream-openai-7d1f0c",
    "anthropic": "sk-ant-upstream-anthropic-7d1f0c",
    "gemini": "AIza-upstream-gemini-7d1f0c",
    "ollama": "ollama-upstream-7d1f0c",
    # The other API of the same vendor.
    "responses": "sk-upstream-openai-7d1f0c",
}
PREFIXES = {"openai": "gpt", "anthropic": "claude", "gemini": "gemini", "ollama": "llama"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """The running servers, by the name of the provider they stand for."""

    openai: Server
    anthropic: Server
    gemini: Server
    ollama: Server
    responses: Server
    """OpenAI's other API; no variable leads to it."""
    outsider: Server
    """Another host: whatever arrives there was sent astray."""

    def __getitem__(self, provider: str) -> Server:
        server: Server = getattr(self, provider)
        return server

    def environment(self) -> dict[str, str]:
        """The variables that make a HelmDash use these servers; groq is a closed port."""
        return {
            "OPENAI_API_KEY": KEYS["openai"],
            "OPENAI_BASE_URL": f"{self.openai.root_url}/v1",
            "ANTHROPIC_API_KEY": KEYS["anthropic"],
            "ANTHROPIC_BASE_URL": self.anthropic.root_url,
            "GEMINI_API_KEY": KEYS["gemini"],
            "GEMINI_BASE_URL": self.gemini.root_url,
            "OLLAMA_HOST": self.ollama.root_url,
            "OLLAMA_API_KEY": KEYS["ollama"],
            "GROQ_API_KEY": KEYS["openai"],
            "GROQ_BASE_URL": f"http://127.0.0.1:{free_port()}/v1",
            "HELMDASH_ALLOW_PRIVATE_UPSTREAMS": "1",
        }


async def _astray(exchange: Exchange) -> None:
    await exchange.reply(200, b'{"error": "nobody should be here"}')


@contextmanager
def run_fleet() -> Iterator[Fleet]:
    """Serve all of them for the length of the block."""
    outsider = Server(_astray)
    outsider.start()
    url = outsider.root_url
    servers = {
        "openai": Server(OpenAIServer(outsider_url=url)),
        "anthropic": Server(AnthropicServer(outsider_url=url)),
        "gemini": Server(GeminiServer(outsider_url=url)),
        "ollama": Server(
            # The gateway asks for windows by itself; tests count what their calls led to.
            OllamaServer(outsider_url=url),
            asides=frozenset({"/api/show"}),
        ),
        "responses": Server(ResponsesServer(outsider_url=url)),
    }
    for server in servers.values():
        server.start()
    try:
        yield Fleet(outsider=outsider, **servers)
    finally:
        for server in (*servers.values(), outsider):
            server.stop()
