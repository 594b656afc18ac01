"""Codex: what it reads of its command line and settings (tried with 0.169.0)."""

from __future__ import annotations

import json
import shlex

from helmdash.pages.parts.agents.wiring import Wiring
from helmdash.pages.parts.client_snippets import Snippet


def codex(wiring: Wiring) -> tuple[Snippet, ...]:
    """The gateway by a shell or for good, or telemetry alone."""
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
    # It takes no key in this file.
    lines = [f"# In the shell's profile: export HELMDASH_API_KEY={wiring.file_key}"]
    lines += ['model_provider = "helmdash"']
    lines += [f"model = {json.dumps(wiring.model)}"] if wiring.model else []
    lines += [f"{name} = {tokens}" for name, tokens in known.items()]
    lines += ["", "[model_providers.helmdash]"]
    lines += [f"{name} = {json.dumps(value)}" for name, value in provider.items()]
    return (
        Snippet("codex-shell", "In a shell", f"{command}\n"),
        Snippet(
            "codex-toml",
            "To keep it: ~/.codex/config.toml, the lines before the table at its top",
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
