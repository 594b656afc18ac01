"""Which program made a call, by the name it gives itself (`User-Agent`).

A table of the agents and libraries that are known; of any other the first word counts. Taken
from the agents' own requests (Claude Code 2.1.197, Codex CLI 0.169.0, Gemini CLI 0.61.0) and the
official SDKs. Nothing of it is trusted: it is short, plain and for people to read.
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

# Name, and what its user agent holds. Agents first, then SDKs, then what any program may use: of
# several that match, the first is the one that says most.
_KNOWN: tuple[tuple[str, str], ...] = (
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
_ANY = re.compile(
    r"(?<![\w./-])(?:"
    + "|".join(f"(?P<k{number}>{pattern})" for number, (_, pattern) in enumerate(_KNOWN))
    + r")(?![\w.])(?:[/ ]v?(?P<version>\d[\w.+-]*))?",
    re.I | re.A,
)


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


def _unknown(text: str) -> Client | None:
    word = _WORD.match(text)
    if word is None:
        return None
    rest = text[word.end() :]
    version = _NUMBER.match(rest[1:]) if rest[:1] in ("/", " ") else None
    return _made(word[0].lower(), version[0] if version else None)


def _made(name: str, version: str | None) -> Client:
    return Client(name=name[:NAME_CHARS], version=(version or "")[:VERSION_CHARS])
