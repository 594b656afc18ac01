"""The status line of Claude Code: its JSON goes to HelmDash, the line that comes back is shown.

It is asked for after each turn and has to be quick: where HelmDash does not answer within a second,
the line says so, and the agent goes on.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any, Callable, TextIO
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request

from helmdash.transcripts.importing import CannotSend
from helmdash.transcripts.posting import make_opener

# Of each step, and of all together: a server may send its answer byte by byte, or its name not be
# found for long.
_TIMEOUT_SECONDS = 1.0
_LIMIT_SECONDS = 1.2
_MOST_BYTES = 1024 * 1024
# What the server is told: no text of the conversation, no folder.
_MEMBERS = ("session_id", "agent_id", "model", "context_window")
_COLORS = {"healthy": "32", "caution": "33", "critical": "31"}
_GREY = "90"


def show_status_line(
    given: TextIO, shown: TextIO, *, url: str, key: str, variables: Mapping[str, str]
) -> int:
    """Read a status line's input, print the line; always 0, for an agent shows no other.

    variables: the environment; NO_COLOR there leaves the color out.
    """
    level, text = _within(_LIMIT_SECONDS, lambda: _ask(given.read(_MOST_BYTES), url, key))
    if "NO_COLOR" in variables:
        shown.write(f"{text}\n")
    else:
        shown.write(f"\x1b[{_COLORS.get(level, _GREY)}m\u25cf\x1b[0m {text}\n")
    return 0


def key_in(variables: Mapping[str, str]) -> str:
    """The key that the agent itself uses, where none is told: it is HelmDash's."""
    return variables.get("HELMDASH_API_KEY") or variables.get("ANTHROPIC_AUTH_TOKEN") or ""


def _within(seconds: float, ask: Callable[[], tuple[str, str]]) -> tuple[str, str]:
    """What comes of it in time. What takes longer goes on by itself, and ends with the program."""
    found: list[tuple[str, str]] = []
    thread = threading.Thread(target=lambda: found.append(ask()), daemon=True)
    thread.start()
    thread.join(seconds)
    return found[0] if found else ("", "HelmDash: no answer")


def _ask(text: str, url: str, key: str) -> tuple[str, str]:
    try:
        told = json.loads(text)
        body = {name: told[name] for name in _MEMBERS if told.get(name) is not None}
        # Early in a session, and with older clients, it has no window yet.
        body.setdefault("context_window", {})
        line = _post(f"{url.rstrip('/')}/api/v1/hooks/claude-code", key, body)["status_line"]
        return str(line["level"]), _plain(str(line["text"]))
    except HTTPError as error:
        error.close()
        return "", f"HelmDash: refused ({error.code})"
    except (URLError, OSError):
        return "", "HelmDash: no answer"
    except HTTPException:
        return "", "HelmDash: no answer"
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, CannotSend):
        return "", "HelmDash: nothing to show"


def _post(address: str, key: str, body: Mapping[str, Any]) -> Any:
    if urlsplit(address).scheme not in ("http", "https"):
        raise CannotSend(f"--url wants an address such as http://localhost:8000, not {address!r}.")
    headers = {
        "Authorization": f"Bearer {key}",
        "Content-Type": "application/json",
        "User-Agent": "helmdash-statusline",
    }
    request = Request(address, data=json.dumps(body).encode(), headers=headers)  # noqa: S310
    with make_opener().open(request, timeout=_TIMEOUT_SECONDS) as answer:
        return json.loads(answer.read(_MOST_BYTES))


def _plain(text: str) -> str:
    """Without what moves a terminal's cursor."""
    return "".join(char for char in text if char.isprintable())


def address_in(variables: Mapping[str, str]) -> str:
    """Where HelmDash is, where nobody says so: the address that the agent itself uses."""
    for name in ("HELMDASH_URL", "ANTHROPIC_BASE_URL"):
        if variables.get(name):
            return variables[name]
    return "http://localhost:8000"
