"""Gemini CLI, opencode, pi, Aider, goose, Qwen Code and Cline with its kin. All but goose and the
editors' Cline were tried (docs/tried.md)."""

from __future__ import annotations

import json
import shlex

from helmdash.pages.parts.agents.wiring import Wiring, exported, exports
from helmdash.pages.parts.client_snippets import Snippet

# Beside another address Gemini CLI takes a key only where its settings say so. What else stands
# there stays; a file that is no JSON is left alone, and said.
_GEMINI_KEY = (
    "const f = require('fs'), p = require('os').homedir() + '/.gemini/settings.json'; "
    "const s = f.existsSync(p) ? JSON.parse(f.readFileSync(p, 'utf8')) : {}; "
    "((s.security ??= {}).auth ??= {}).selectedType = 'gemini-api-key'; "
    "f.mkdirSync(require('path').dirname(p), {recursive: true}); "
    "f.writeFileSync(p, JSON.stringify(s, null, 2))"
)


def gemini_cli(wiring: Wiring) -> tuple[Snippet, ...]:
    """Its address, its key, and the setting without which it takes no key there."""
    variables = {
        "GOOGLE_GEMINI_BASE_URL": wiring.base,
        "GEMINI_API_KEY": wiring.file_key,
        "GEMINI_MODEL": wiring.model,
    }
    text = f"{exported(variables, wiring)}node -e {shlex.quote(_GEMINI_KEY)}\ngemini\n"
    return (Snippet("gemini-cli-shell", "In a shell", text),)


def opencode(wiring: Wiring) -> tuple[Snippet, ...]:
    """A provider of its own, by the environment or in its settings."""
    limits = {"context": wiring.window, "output": wiring.output_tokens}
    # It takes both or none.
    sizes = {"limit": limits} if None not in limits.values() else {}
    settings = {
        "$schema": "https://opencode.ai/config.json",
        "model": f"helmdash/{wiring.model}",
        "provider": {
            "helmdash": {
                "npm": "@ai-sdk/openai-compatible",
                "name": "HelmDash",
                "options": {"baseURL": f"{wiring.base}/v1", "apiKey": "{env:HELMDASH_API_KEY}"},
                "models": {wiring.model: {"name": wiring.model, **sizes}},
            }
        },
    }
    text = json.dumps(settings, ensure_ascii=False, indent=2)
    shell = (
        f"export HELMDASH_API_KEY={wiring.shell_key}\n"
        f"export OPENCODE_CONFIG_CONTENT={shlex.quote(json.dumps(settings, ensure_ascii=False))}\n"
        "opencode\n"
    )
    return (
        Snippet("opencode-shell", "In a shell", shell),
        Snippet("opencode-json", "To keep it: opencode.json", f"{text}\n"),
    )


def pi(wiring: Wiring) -> tuple[Snippet, ...]:
    """A provider in its list of models, which does not name its sessions by itself."""
    sizes = {"contextWindow": wiring.window, "maxTokens": wiring.output_tokens}
    known = {name: tokens for name, tokens in sizes.items() if tokens is not None}
    settings = {
        "providers": {
            "helmdash": {
                "baseUrl": f"{wiring.base}/v1",
                "api": "openai-completions",
                "apiKey": "$HELMDASH_API_KEY",
                "models": [
                    {
                        "id": wiring.model,
                        **known,
                        "compat": {"sendSessionAffinityHeaders": True},
                    }
                ],
            }
        }
    }
    shell = (
        f"export HELMDASH_API_KEY={wiring.shell_key}\n"
        f"pi --provider helmdash --model {shlex.quote(wiring.model)}\n"
    )
    text = json.dumps(settings, ensure_ascii=False, indent=2)
    return (
        Snippet("pi-json", "First: ~/.pi/agent/models.json", f"{text}\n"),
        Snippet("pi-shell", "Then, in a shell", shell),
    )


def aider(wiring: Wiring) -> tuple[Snippet, ...]:
    """OpenAI's variables, and the window of a model that it does not know."""
    name = f"openai/{wiring.model}"
    shell = exports(
        "aider",
        f"aider --model {shlex.quote(name)}",
        wiring,
        OPENAI_API_BASE=f"{wiring.base}/v1",
        OPENAI_API_KEY=wiring.file_key,
    )
    if wiring.window is None:
        return (shell,)
    sizes = {"max_input_tokens": wiring.window, "max_output_tokens": wiring.output_tokens}
    known = {each: tokens for each, tokens in sizes.items() if tokens is not None}
    metadata = {name: {**known, "litellm_provider": "openai", "mode": "chat"}}
    text = json.dumps(metadata, ensure_ascii=False, indent=2)
    return (
        shell,
        Snippet("aider-json", "Its window: .aider.model.metadata.json", f"{text}\n"),
    )


def goose(wiring: Wiring) -> tuple[Snippet, ...]:
    """Its variables; the address is without /v1."""
    window = {} if wiring.window is None else {"GOOSE_CONTEXT_LIMIT": str(wiring.window)}
    return (
        exports(
            "goose",
            "goose session",
            wiring,
            GOOSE_PROVIDER="openai",
            GOOSE_MODEL=wiring.model,
            OPENAI_HOST=wiring.base,
            OPENAI_API_KEY=wiring.file_key,
            **window,
        ),
    )


def qwen_code(wiring: Wiring) -> tuple[Snippet, ...]:
    """OpenAI's variables."""
    return (
        exports(
            "qwen-code",
            "qwen",
            wiring,
            OPENAI_BASE_URL=f"{wiring.base}/v1",
            OPENAI_API_KEY=wiring.file_key,
            OPENAI_MODEL=wiring.model,
        ),
    )


def cline(wiring: Wiring) -> tuple[Snippet, ...]:
    """What to type into its settings in the editor, and what its command is told once."""
    fields = [
        "API Provider: OpenAI Compatible",
        f"Base URL: {wiring.base}/v1",
        f"API Key: {wiring.file_key}",
        f"Model ID: {wiring.model}",
    ]
    if wiring.window is not None:
        fields.append(f"Context Window Size: {wiring.window}")
    if wiring.output_tokens is not None:
        fields.append(f"Max Output Tokens: {wiring.output_tokens}")
    text = "\n".join(fields) + "\n"
    shell = (
        f"cline auth -p openai -b {shlex.quote(f'{wiring.base}/v1')} "
        f"-k {wiring.shell_key} -m {shlex.quote(wiring.model)}\ncline\n"
    )
    return (
        Snippet("cline-fields", "In its settings, under API Configuration", text),
        Snippet("cline-shell", "Or its command, in a shell", shell),
    )
