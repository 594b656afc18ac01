"""How the agents that people run are connected: for each one block to paste, filled in.

Facts about the clients: what they read was tried with the versions that the tests' comments and
docs/connect.md name. A window is written only where it is known: a client that is told none has a
default of its own, and a wrong one is worse.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from helmdash.core.agents.status_line import windows_differ
from helmdash.core.budgets.budgets import EffectiveBudget
from helmdash.core.upstreams.endpoints import ProviderKind
from helmdash.pages.parts.client_snippets import Snippet
from helmdash.pages.parts.snippets import KEY_VARIABLE

# Claude Code takes no smaller window of its setting, and no larger one.
_CLAUDE_WINDOWS = range(100_000, 1_000_001)
# A window that Claude Code counts on for a Claude model behind an address that is not its vendor's.
_CLAUDE_DEFAULT_WINDOW = 200_000
_LONG_WINDOW = 1_000_000
# Beside another address Gemini CLI takes a key only where its settings say so. What else stands
# there stays; a file that is no JSON is left alone, and said.
_GEMINI_KEY = (
    "const f = require('fs'), p = require('os').homedir() + '/.gemini/settings.json'; "
    "const s = f.existsSync(p) ? JSON.parse(f.readFileSync(p, 'utf8')) : {}; "
    "((s.security ??= {}).auth ??= {}).selectedType = 'gemini-api-key'; "
    "f.mkdirSync(require('path').dirname(p), {recursive: true}); "
    "f.writeFileSync(p, JSON.stringify(s, null, 2))"
)
# In files: the reader puts a key in its place.
_BLANK_KEY = "hd_YOUR_KEY"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """What the blocks are filled in with.

    base: this server's address. key: one of its keys; None: its reader has one, in the variable
    HELMDASH_API_KEY. model: as `provider/model`; "": the one that the client takes by itself, where
    `Agent.vendor` allows that. window: tokens; compacts_at: tokens above which a conversation is
    critical; output_tokens: of one reply. None: not known.
    """

    base: str
    key: str | None
    model: str
    window: int | None = None
    compacts_at: int | None = None
    output_tokens: int | None = None

    @property
    def shell_key(self) -> str:
        """The key as a shell takes it."""
        return shlex.quote(self.key) if self.key else f'"${KEY_VARIABLE}"'

    @property
    def file_key(self) -> str:
        """The key as a file takes it, in which no variable is looked up."""
        return self.key or _BLANK_KEY


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """A program that people run.

    clients: the names that its calls may carry (core.conversations.clients). note: what to know of
    it, as sentences. write: its blocks, the one to begin with first. vendor: whose models it asks
    for where it is told none; None: it has to be told one.
    """

    id: str
    name: str
    clients: tuple[str, ...]
    note: str
    write: Callable[[Wiring], tuple[Snippet, ...]]
    vendor: ProviderKind | None = None


def find_agent(name: str) -> Agent | None:
    """An agent by its id; None: there is none of that name."""
    return next((agent for agent in AGENTS if agent.id == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowMending:
    """What mends that a client counts on another window than the budget has.

    setting: a line for the client; "": it has none. connect: the client's id on the page Connect.
    """

    client: str
    client_window: int
    limit_tokens: int
    setting: str
    connect: str


def window_mending(
    *, client_name: str, client_window: int | None, model: str, budget: EffectiveBudget
) -> WindowMending | None:
    """What to tell where a client's window and its model's budget disagree; None: they do not, or
    one is not known."""
    limit = budget.limit_tokens
    if client_window is None or limit is None or not windows_differ(client_window, limit):
        return None
    agent = next((each for each in AGENTS if client_name in each.clients), None)
    wiring = Wiring(
        base="", key=None, model=model, window=limit, compacts_at=budget.critical_max_tokens
    )
    setting = ""
    if agent is not None and agent.id == "codex":
        setting = f"model_context_window = {limit}"
    elif agent is not None and agent.id == "claude-code":
        told = _claude_variables(wiring)
        names = ("CLAUDE_CODE_MAX_CONTEXT_TOKENS", "CLAUDE_CODE_AUTO_COMPACT_WINDOW")
        wanted = [name for name in names if name in told]
        if told.get("ANTHROPIC_MODEL", "").endswith("[1m]"):
            wanted.insert(0, "ANTHROPIC_MODEL")
        setting = " ".join(f"{name}={told[name]}" for name in wanted)
    return WindowMending(
        client=agent.name if agent else client_name,
        client_window=client_window,
        limit_tokens=limit,
        setting=setting,
        connect=agent.id if agent else "",
    )


def _claude_code(wiring: Wiring) -> tuple[Snippet, ...]:
    told = _claude_variables(wiring)
    exports = _exported(told, wiring)
    base = wiring.base
    events = ("SessionStart", "PreCompact", "PostCompact", "StopFailure", "SessionEnd")
    hook = {
        "type": "http",
        "url": f"{base}/api/v1/hooks/claude-code",
        # The client keeps its own credentials from hooks, so the key has a name of ours as well.
        "headers": {"Authorization": f"Bearer ${KEY_VARIABLE}"},
        "allowedEnvVars": [KEY_VARIABLE],
    }
    settings = {
        "env": {**told, KEY_VARIABLE: wiring.file_key},
        "hooks": {event: [{"hooks": [hook]}] for event in events},
        "statusLine": {
            "type": "command",
            "command": f"python3 ~/.helmdash.pyz statusline --url {shlex.quote(base)}",
        },
    }
    fetch = f"curl -sSo ~/.helmdash.pyz {shlex.quote(base + '/connect/helmdash.pyz')}\n"
    return (
        Snippet("claude-code-shell", "In a shell", f"{exports}claude\n"),
        Snippet(
            "claude-code-settings",
            "For good, with compactions and a status line: ~/.claude/settings.json",
            json.dumps(settings, indent=2, ensure_ascii=False) + "\n",
        ),
        Snippet("claude-code-status", "Once, for the status line", fetch),
        Snippet(
            "claude-code-telemetry",
            "Or without the gateway, by its telemetry: it keeps its own address and account",
            f"{_exported(_claude_telemetry(wiring), wiring)}claude\n",
        ),
    )


def _claude_telemetry(wiring: Wiring) -> dict[str, str]:
    """Logs have each call with its tokens; none has the sizes that were sent."""
    return {
        "CLAUDE_CODE_ENABLE_TELEMETRY": "1",
        "OTEL_LOGS_EXPORTER": "otlp",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_EXPORTER_OTLP_ENDPOINT": wiring.base,
        # A header's value: the reader's own shell has no part in it.
        "OTEL_EXPORTER_OTLP_HEADERS": f"Authorization=Bearer {wiring.file_key}",
    }


def _claude_variables(wiring: Wiring) -> dict[str, str]:
    told = {
        "ANTHROPIC_BASE_URL": wiring.base,
        "ANTHROPIC_AUTH_TOKEN": wiring.file_key,
        # One that is set would be sent in its place.
        "ANTHROPIC_API_KEY": "",
    }
    if not wiring.model:
        return told
    model = wiring.model.rpartition("/")[2]
    is_claude = model.startswith("claude-")
    window, compacts_at = wiring.window, wiring.compacts_at
    # By its bare name, or the client does not know the model's abilities; the suffix, which is cut
    # off before the request is sent, is how it learns of a window beyond its default.
    is_long = is_claude and window is not None and window >= _LONG_WINDOW
    told["ANTHROPIC_MODEL"] = f"{model}[1m]" if is_long else model if is_claude else wiring.model
    if not is_claude:
        told["ANTHROPIC_DEFAULT_HAIKU_MODEL"] = wiring.model
        if window is not None:
            # Of other models it counts on 200,000, whatever they have.
            told["CLAUDE_CODE_MAX_CONTEXT_TOKENS"] = str(window)
    believed = _LONG_WINDOW if is_long else _CLAUDE_DEFAULT_WINDOW if is_claude else window
    if (
        compacts_at is not None
        and compacts_at in _CLAUDE_WINDOWS
        and (believed is None or compacts_at < believed)
    ):
        # Only ever lowers what it counts on.
        told["CLAUDE_CODE_AUTO_COMPACT_WINDOW"] = str(compacts_at)
    return told


def _codex(wiring: Wiring) -> tuple[Snippet, ...]:
    sizes = {
        "model_context_window": wiring.window,
        "model_auto_compact_token_limit": wiring.compacts_at,
    }
    known = {name: tokens for name, tokens in sizes.items() if tokens is not None}
    provider = {
        "name": "HelmDash",
        "base_url": f"{wiring.base}/v1",
        "env_key": "HELMDASH_API_KEY",
        "wire_api": "responses",
    }
    inline = ", ".join(f"{name} = {json.dumps(value)}" for name, value in provider.items())
    options = [
        f"model_providers.helmdash={{ {inline} }}",
        'model_provider="helmdash"',
        *([f"model={json.dumps(wiring.model)}"] if wiring.model else []),
        *(f"{name}={tokens}" for name, tokens in known.items()),
    ]
    command = " \\\n".join(
        [
            f"HELMDASH_API_KEY={wiring.shell_key} codex",
            *(f"  -c {shlex.quote(option)}" for option in options),
        ]
    )
    lines = ['model_provider = "helmdash"']
    lines += [f"model = {json.dumps(wiring.model)}"] if wiring.model else []
    lines += [f"{name} = {tokens}" for name, tokens in known.items()]
    lines += ["", "[model_providers.helmdash]"]
    lines += [f"{name} = {json.dumps(value)}" for name, value in provider.items()]
    return (
        Snippet("codex-shell", "In a shell", f"{command}\n"),
        Snippet(
            "codex-toml",
            "For good: ~/.codex/config.toml, the lines before the table at its top",
            "\n".join(lines) + "\n",
        ),
        Snippet(
            "codex-telemetry",
            "Or without the gateway, by its telemetry: ~/.codex/config.toml",
            "\n".join(
                [
                    "[otel]",
                    "log_user_prompt = false",
                    "",
                    '[otel.exporter."otlp-http"]',
                    f"endpoint = {json.dumps(wiring.base + '/v1/logs')}",
                    'protocol = "binary"',
                    "",
                    '[otel.exporter."otlp-http".headers]',
                    f"Authorization = {json.dumps('Bearer ' + wiring.file_key)}",
                ]
            )
            + "\n",
        ),
    )


def _gemini_cli(wiring: Wiring) -> tuple[Snippet, ...]:
    variables = {
        "GOOGLE_GEMINI_BASE_URL": wiring.base,
        "GEMINI_API_KEY": wiring.file_key,
        "GEMINI_MODEL": wiring.model,
    }
    text = f"{_exported(variables, wiring)}node -e {shlex.quote(_GEMINI_KEY)}\ngemini\n"
    return (Snippet("gemini-cli-shell", "In a shell", text),)


def _opencode(wiring: Wiring) -> tuple[Snippet, ...]:
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
        Snippet("opencode-json", "For good: opencode.json", f"{text}\n"),
    )


def _pi(wiring: Wiring) -> tuple[Snippet, ...]:
    sizes = {"contextWindow": wiring.window, "maxTokens": wiring.output_tokens}
    known = {name: tokens for name, tokens in sizes.items() if tokens is not None}
    settings = {
        "providers": {
            "helmdash": {
                "baseUrl": f"{wiring.base}/v1",
                "api": "openai-completions",
                "apiKey": "HELMDASH_API_KEY",
                "models": [{"id": wiring.model, **known}],
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


def _aider(wiring: Wiring) -> tuple[Snippet, ...]:
    name = f"openai/{wiring.model}"
    shell = _exports(
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


def _goose(wiring: Wiring) -> tuple[Snippet, ...]:
    window = {} if wiring.window is None else {"GOOSE_CONTEXT_LIMIT": str(wiring.window)}
    return (
        _exports(
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


def _qwen_code(wiring: Wiring) -> tuple[Snippet, ...]:
    return (
        _exports(
            "qwen-code",
            "qwen",
            wiring,
            OPENAI_BASE_URL=f"{wiring.base}/v1",
            OPENAI_API_KEY=wiring.file_key,
            OPENAI_MODEL=wiring.model,
        ),
    )


def _cline(wiring: Wiring) -> tuple[Snippet, ...]:
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
    return (Snippet("cline-fields", "In its settings, under API Configuration", text),)


def _exports(name: str, command: str, wiring: Wiring, **variables: str) -> Snippet:
    text = f"{_exported(variables, wiring)}{command}\n"
    return Snippet(f"{name}-shell", "In a shell", text)


def _exported(variables: Mapping[str, str], wiring: Wiring) -> str:
    """The variables of a program, for a shell; empty values stay empty."""
    lines = []
    for name, value in variables.items():
        word = wiring.shell_key if value == wiring.file_key else shlex.quote(value)
        lines.append(f"export {name}={word if value else ''}\n")
    return "".join(lines)


AGENTS: tuple[Agent, ...] = (
    Agent(
        id="claude-code",
        name="Claude Code",
        clients=("claude-code",),
        note="Its sessions, sub-agents and compactions come by themselves. The window that it "
        "counts on is set to the model's budget.",
        write=_claude_code,
        vendor=ProviderKind.ANTHROPIC,
    ),
    Agent(
        id="codex",
        name="Codex",
        clients=("codex",),
        note="It speaks the Responses API only. It compacts where the model's budget is critical.",
        write=_codex,
        vendor=ProviderKind.OPENAI,
    ),
    Agent(
        id="gemini-cli",
        name="Gemini CLI",
        clients=("gemini-cli",),
        note="It signs in by a key from then on (~/.gemini/settings.json). It cannot be told a "
        "window: it counts on the one that it knows the model by.",
        write=_gemini_cli,
    ),
    Agent(
        id="opencode",
        name="opencode",
        clients=("opencode",),
        note="Its sessions name their conversations, sub-agents included.",
        write=_opencode,
    ),
    Agent(
        id="pi",
        name="pi",
        clients=("pi", "openai-node"),
        note="Its calls come by OpenAI's JavaScript library, whose name they carry.",
        write=_pi,
    ),
    Agent(
        id="aider",
        name="Aider",
        clients=("aider", "litellm", "openai-python"),
        note="Its calls carry the name of the library that sends them.",
        write=_aider,
    ),
    Agent(
        id="goose",
        name="goose",
        clients=("goose",),
        note="The address has no /v1: it adds that by itself.",
        write=_goose,
    ),
    Agent(
        id="qwen-code",
        name="Qwen Code",
        clients=("qwen-code",),
        note="It speaks OpenAI's format.",
        write=_qwen_code,
    ),
    Agent(
        id="cline",
        name="Cline, Roo Code, Kilo Code",
        clients=("cline", "roo-code", "kilo-code", "openai-node"),
        note="They are set up in their own settings in the editor.",
        write=_cline,
    ),
)
