"""Claude Code: what it reads of its environment and settings (tried with 2.1.330)."""

from __future__ import annotations

import json
import shlex

from helmdash.pages.parts.agents.wiring import Wiring, exported
from helmdash.pages.parts.client_snippets import Snippet
from helmdash.pages.parts.snippets import KEY_VARIABLE

# It takes no smaller window of its setting, and no larger one.
_CLAUDE_WINDOWS = range(100_000, 1_000_001)
# What it counts on for a Claude model behind an address that is not its vendor's.
_CLAUDE_DEFAULT_WINDOW = 200_000
_LONG_WINDOW = 1_000_000


def claude_code(wiring: Wiring) -> tuple[Snippet, ...]:
    """The gateway by a shell or for good, hooks and status line, or telemetry alone."""
    told = claude_variables(wiring)
    exports = exported(told, wiring)
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
            "To keep it, with compactions and a status line: ~/.claude/settings.json",
            json.dumps(settings, indent=2, ensure_ascii=False) + "\n",
        ),
        Snippet("claude-code-status", "Once, for the status line", fetch),
        Snippet(
            "claude-code-telemetry",
            "Or without the gateway, by its telemetry: it keeps its own address and account",
            f"{exported(_telemetry(wiring), wiring)}claude\n",
        ),
    )


def _telemetry(wiring: Wiring) -> dict[str, str]:
    """Logs have each call with its tokens; none has the sizes that were sent."""
    return {
        "CLAUDE_CODE_ENABLE_TELEMETRY": "1",
        "OTEL_LOGS_EXPORTER": "otlp",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_EXPORTER_OTLP_ENDPOINT": wiring.base,
        # A header's value: the reader's own shell has no part in it.
        "OTEL_EXPORTER_OTLP_HEADERS": f"Authorization=Bearer {wiring.file_key}",
    }


def claude_variables(wiring: Wiring) -> dict[str, str]:
    """What leads it to the gateway, and the window that it is to count on."""
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
