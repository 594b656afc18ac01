"""How SDKs are pointed at the gateway: text to paste into a program or a shell. Agents that people
run are in `agents`.

Every snippet reads the key from the environment. The Python and curl ones are run by the tests as
they stand here.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass

from helmdash.pages.parts.snippets import KEY_VARIABLE

_ASK = "Say hello."


@dataclass(frozen=True, slots=True)
class Snippet:
    """One text to copy; `id` is its element's."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class ClientHelp:
    """One client: what to know of it, and the texts."""

    id: str
    name: str
    note: str
    snippets: tuple[Snippet, ...]


def clients(base: str, model: str) -> tuple[ClientHelp, ...]:
    """How each client is set up for the address of this server and a model as `provider/model`."""
    return (
        _openai(base, model),
        _anthropic(base, model),
        _ollama(base, model),
        _gemini(base, model),
        _curl(base, model),
        _variables(base, model),
    )


def _openai(base: str, model: str) -> ClientHelp:
    python = f"""\
import os

from openai import OpenAI

client = OpenAI(
    base_url={_quoted(base + "/v1")},
    api_key=os.environ["{KEY_VARIABLE}"],
)
reply = client.chat.completions.create(
    model={_quoted(model)},
    messages=[{{"role": "user", "content": "{_ASK}"}}],
)
print(reply.choices[0].message.content)
"""
    script = f"""\
import OpenAI from "openai";

const client = new OpenAI({{
  baseURL: {_quoted(base + "/v1")},
  apiKey: process.env.{KEY_VARIABLE},
}});
const reply = await client.chat.completions.create({{
  model: {_quoted(model)},
  messages: [{{ role: "user", content: "{_ASK}" }}],
}});
console.log(reply.choices[0].message.content);
"""
    return ClientHelp(
        "openai",
        "OpenAI SDK",
        "The base URL ends in /v1. Headers of ours go into extra_headers of a call (Python), or "
        "into default_headers (defaultHeaders) of the client.",
        (
            Snippet("openai-python", "Python", python),
            Snippet("openai-js", "JavaScript", script),
        ),
    )


def _anthropic(base: str, model: str) -> ClientHelp:
    python = f"""\
import os

from anthropic import Anthropic

client = Anthropic(
    base_url={_quoted(base)},
    auth_token=os.environ["{KEY_VARIABLE}"],
)
reply = client.messages.create(
    model={_quoted(model)},
    max_tokens=200,
    messages=[{{"role": "user", "content": "{_ASK}"}}],
)
print(reply.content)
"""
    script = f"""\
import Anthropic from "@anthropic-ai/sdk";

const client = new Anthropic({{
  baseURL: {_quoted(base)},
  authToken: process.env.{KEY_VARIABLE},
}});
const reply = await client.messages.create({{
  model: {_quoted(model)},
  max_tokens: 200,
  messages: [{{ role: "user", content: "{_ASK}" }}],
}});
console.log(reply.content);
"""
    return ClientHelp(
        "anthropic",
        "Anthropic SDK",
        "The base URL has no /v1: the SDK adds it. A key as api_key works, too.",
        (
            Snippet("anthropic-python", "Python", python),
            Snippet("anthropic-js", "JavaScript", script),
        ),
    )


def _ollama(base: str, model: str) -> ClientHelp:
    python = f"""\
import os

from ollama import Client

key = os.environ["{KEY_VARIABLE}"]
client = Client(
    host={_quoted(base)},
    headers={{"Authorization": f"Bearer {{key}}"}},
)
reply = client.chat(
    model={_quoted(model)},
    messages=[{{"role": "user", "content": "{_ASK}"}}],
)
print(reply.message.content)
"""
    script = f"""\
import {{ Ollama }} from "ollama";

const client = new Ollama({{
  host: {_quoted(base)},
  headers: {{ Authorization: `Bearer ${{process.env.{KEY_VARIABLE}}}` }},
}});
const reply = await client.chat({{
  model: {_quoted(model)},
  messages: [{{ role: "user", content: "{_ASK}" }}],
}});
console.log(reply.message.content);
"""
    return ClientHelp(
        "ollama",
        "Ollama's libraries",
        "Models that Ollama does not serve can be asked for, too.",
        (
            Snippet("ollama-python", "Python", python),
            Snippet("ollama-js", "JavaScript", script),
        ),
    )


def _gemini(base: str, model: str) -> ClientHelp:
    python = f"""\
import os

from google import genai
from google.genai import types

client = genai.Client(
    api_key=os.environ["{KEY_VARIABLE}"],
    http_options=types.HttpOptions(base_url={_quoted(base)}),
)
reply = client.models.generate_content(
    model={_quoted(model)},
    contents="{_ASK}",
)
print(reply.text)
"""
    script = f"""\
import {{ GoogleGenAI }} from "@google/genai";

const client = new GoogleGenAI({{
  apiKey: process.env.{KEY_VARIABLE},
  httpOptions: {{ baseUrl: {_quoted(base)} }},
}});
const reply = await client.models.generateContent({{
  model: {_quoted(model)},
  contents: "{_ASK}",
}});
console.log(reply.text);
"""
    return ClientHelp(
        "gemini",
        "Google Gen AI SDK",
        "The base URL has no version: the SDK adds it, and both /v1 and /v1beta are served.",
        (
            Snippet("gemini-python", "Python", python),
            Snippet("gemini-js", "JavaScript", script),
        ),
    )


def _curl(base: str, model: str) -> ClientHelp:
    url = shlex.quote(f"{base}/v1/chat/completions")
    messages = [{"role": "user", "content": _ASK}]
    plain: dict[str, object] = {"model": model, "messages": messages}
    return ClientHelp(
        "curl",
        "curl",
        "With -i, the headers of the response are shown as well.",
        (
            Snippet("curl-plain", "Whole", _post("curl -sS -i", url, plain)),
            Snippet(
                "curl-stream", "Streamed", _post("curl -sS -N", url, {**plain, "stream": True})
            ),
        ),
    )


def _variables(base: str, model: str) -> ClientHelp:
    key = f'"${KEY_VARIABLE}"'
    openai = f"""\
export OPENAI_BASE_URL={shlex.quote(base + "/v1")}
export OPENAI_API_KEY={key}
"""
    anthropic = f"""\
export ANTHROPIC_BASE_URL={shlex.quote(base)}
export ANTHROPIC_AUTH_TOKEN={key}
"""
    ollama = f"""\
export OLLAMA_HOST={shlex.quote(base)}
export OLLAMA_API_KEY={key}
"""
    gemini = f"""\
export GOOGLE_GEMINI_BASE_URL={shlex.quote(base)}
export GEMINI_API_KEY={key}
"""
    return ClientHelp(
        "variables",
        "Programs, by environment variables",
        "For programs that leave the address to their SDK. Set these where the client runs: where "
        "HelmDash runs, the same variables name its upstreams.",
        (
            Snippet("variables-openai", "Built on OpenAI's SDK", openai),
            Snippet("variables-anthropic", "Built on Anthropic's SDK", anthropic),
            Snippet("variables-ollama", "Built on Ollama's Python library", ollama),
            Snippet("variables-gemini", "Built on Google's SDK", gemini),
        ),
    )


def _post(command: str, url: str, body: dict[str, object]) -> str:
    return (
        f"{command} {url} \\\n"
        f'  -H "Authorization: Bearer ${KEY_VARIABLE}" \\\n'
        '  -H "Content-Type: application/json" \\\n'
        f"  -d {shlex.quote(json.dumps(body, ensure_ascii=False))}\n"
    )


def _quoted(text: str) -> str:
    """A string literal, of Python and of JavaScript alike."""
    return json.dumps(text, ensure_ascii=False)
