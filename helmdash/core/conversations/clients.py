"""Which program made a call, by the name it gives itself.

That is its `User-Agent`, by a table of the agents and libraries that are known; of any other the
first word counts. Some agents send the one of the library that they are built on: these are known
by how their own system prompt begins. Taken from the agents' own requests (fixtures/clients) and
the official SDKs. Nothing of it is trusted: it is short, plain and for people to read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated

from helmdash.answers import BLANK_IS_NULL

NAME_CHARS = 64
VERSION_CHARS = 32

# A longer header says nothing more; what is read of it stays cheap.
_READ_CHARS = 512
_NUMBER = re.compile(r"\d[\w.+-]*", re.A)
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9._+-]*(?:/[A-Za-z][A-Za-z0-9._-]*)?")

# Name, and what its user agent holds: of several that match, the first is the one that says most.
_AGENTS: tuple[tuple[str, str], ...] = (
    ("claude-code", r"claude-cli|claude-code"),
    ("codex", r"codex[-_]cli_rs|codex[-_]exec|codex[-_]tui|codex[-_]vscode|codex"),
    ("gemini-cli", r"geminicli(?:-[a-z-]+)?"),
    ("qwen-code", r"qwencode"),
    ("opencode", r"opencode"),
    ("cline", r"cline"),
    ("roo-code", r"roocode|roo-code"),
    ("kilo-code", r"kilo-?code"),
    ("aider", r"aider(?:-chat)?"),
    ("goose", r"goose"),
    ("continue", r"continue"),
    ("copilot", r"githubcopilot(?:chat)?|copilot-cli"),
    ("cursor", r"cursor"),
    ("zed", r"zed"),
    ("open-webui", r"open-?webui"),
)
# SDKs, then what any program may use.
_LIBRARIES: tuple[tuple[str, str], ...] = (
    ("litellm", r"litellm"),
    ("langchain", r"langchain[a-z-]*|langchainjs[a-z-]*"),
    ("llama-index", r"llama-?index"),
    ("pydantic-ai", r"pydantic-ai"),
    ("ai-sdk", r"ai-sdk(?:/[a-z-]+)?|(?<!.)ai"),
    ("openai-python", r"(?:async)?(?:azure)?openai/python"),
    ("openai-node", r"(?:azure)?openai/(?:js|nodejs)"),
    ("openai-go", r"openai/go"),
    ("openai-java", r"openai/java"),
    ("anthropic-python", r"(?:async)?anthropic(?:bedrock|vertex)?/python"),
    ("anthropic-node", r"anthropic(?:bedrock|vertex)?/js"),
    ("anthropic-go", r"anthropic/go"),
    ("google-genai", r"google-genai-sdk|genai-(?:py|js)"),
    ("ollama-python", r"ollama-python"),
    ("ollama-js", r"ollama-js"),
    ("ollama", r"ollama"),
    ("mistral-python", r"mistral-client-python"),
    ("helmdash", r"helmdash"),
    ("httpx", r"python-httpx|httpx"),
    ("requests", r"python-requests"),
    ("aiohttp", r"aiohttp"),
    ("urllib", r"python-urllib"),
    ("curl", r"curl"),
    ("wget", r"wget"),
    ("postman", r"postmanruntime"),
    ("node-fetch", r"node-fetch"),
    ("undici", r"undici"),
    ("axios", r"axios"),
    ("go-http", r"go-http-client"),
    ("okhttp", r"okhttp"),
    ("browser", r"mozilla"),
)
_KNOWN = (*_AGENTS, *_LIBRARIES)
_AGENT_NAMES = frozenset(name for name, _ in _AGENTS)
_ANY = re.compile(
    r"(?<![\w./-])(?:"
    + "|".join(f"(?P<k{number}>{pattern})" for number, (_, pattern) in enumerate(_KNOWN))
    + r")(?![\w.])(?:[/ ]v?(?P<version>\d[\w.+-]*))?",
    re.I | re.A,
)

# Of agents that send a library's user agent: name, how their system prompt begins, and what else
# stands early in it where the beginning does not name the agent. Recorded from Copilot CLI 1.0.102,
# Continue CLI 1.5.47, Cline 3.0.65, OpenHands 1.16.0, gptme 0.35.1 and Mistral Vibe 3.0.2.
PROMPTS: tuple[tuple[str, str, str], ...] = (
    ("copilot", "You are the GitHub Copilot CLI, ", ""),
    ("continue", "You are an agent in the Continue CLI.", ""),
    ("cline", "You are Cline, ", ""),
    ("openhands", "You are OpenHands agent, ", ""),
    ("gptme", "You are gptme v", ""),
    ("mistral-vibe", "You help users get complex tasks done. ", "You are Mistral Vibe, "),
)
_EARLY_CHARS = 8_000
_PROMPT_BEGINNINGS = tuple(begins for _, begins, _ in PROMPTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """The program that made a call, as far as it names itself."""

    name: str
    version: Annotated[str, BLANK_IS_NULL] = ""


# Few programs call one server; names come from strangers, so there is a bound.
@lru_cache(maxsize=1024)
def client_of(user_agent: str) -> Client | None:
    """The client of a `User-Agent` header; None where it says nothing. Never raises.

    >>> client_of("AsyncOpenAI/Python 1.99.0")
    Client(name='openai-python', version='1.99.0')
    """
    text = user_agent[:_READ_CHARS].strip()
    best: tuple[int, Client] | None = None
    for found in _ANY.finditer(text):
        rank = next(number for number in range(len(_KNOWN)) if found[f"k{number}"] is not None)
        if best is None or rank < best[0]:
            best = (rank, _made(_KNOWN[rank][0], found["version"]))
    return best[1] if best else _unknown(text)


def client_by_prompt(client: Client | None, prompt: str) -> Client | None:
    """The agent whose own system prompt this is, where the user agent named none; else `client`.

    client: who the user agent says it is. prompt: the first system message; "" for none. An agent
    known so has no version: the user agent's is its library's.

    >>> client_by_prompt(client_of("OpenAI/JS 5.20.1"), "You are Cline, an AI coding agent.")
    Client(name='cline', version='')
    """
    if client is not None and client.name in _AGENT_NAMES:
        return client
    if not prompt.startswith(_PROMPT_BEGINNINGS):
        return client
    for name, begins, early in PROMPTS:
        if prompt.startswith(begins) and early in prompt[:_EARLY_CHARS]:
            return Client(name=name)
    return client


def _unknown(text: str) -> Client | None:
    word = _WORD.match(text)
    if word is None:
        return None
    rest = text[word.end() :]
    version = _NUMBER.match(rest[1:]) if rest[:1] in ("/", " ") else None
    return _made(word[0].lower(), version[0] if version else None)


def _made(name: str, version: str | None) -> Client:
    return Client(name=name[:NAME_CHARS], version=(version or "")[:VERSION_CHARS])
