"""The world around the gateway: a served HelmDash, the simulated vendors, and the records."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx

from tests.support.server import Served
from tests.support.upstreams import Fleet, responses
from tests.support.upstreams.fleet import KEYS, PREFIXES

PROVIDERS = ("openai", "anthropic", "gemini", "ollama")
# A stored upstream that speaks the Responses API and no other.
RESPONSES = "responses"
# The same server, with a key of the default project's own; it is said to speak chat as well.
OWN_RESPONSES = "own-responses"
# The first again, under the name by which it has no address that compacts.
PLAIN_RESPONSES = "plain-responses"
_PREFIXES = {
    **PREFIXES,
    RESPONSES: responses.PREFIX,
    OWN_RESPONSES: responses.PREFIX,
    PLAIN_RESPONSES: responses.PREFIX,
}
# What the simulated models report (plays.Tokens).
PROMPT, COMPLETION = 1200, 34
_RECORD_SECONDS = 10
# The recorder commits in groups some milliseconds apart.
_LOOK_SECONDS = 0.02
WINDOW_TOKENS = 128_000
TINY_TOKENS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """One running HelmDash whose upstreams are simulated."""

    served: Served
    fleet: Fleet
    key: str
    http: httpx.Client
    """Requests to the gateway with the key."""
    api: httpx.Client
    """Requests to `/api/v1` with the key."""

    @property
    def url(self) -> str:
        return self.served.base_url

    def post(
        self, path: str, body: object = None, *, content: bytes | None = None, **headers: str
    ) -> httpx.Response:
        """One request to the gateway with the key; keywords are headers (`_` for `-`)."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if content is None:
            return self.http.post(path, json=body, headers=named)
        kind = {"content-type": "application/json"}
        return self.http.post(path, content=content, headers={**kind, **named})

    def call(self, call_id: str) -> dict[str, Any]:
        """The record of a call, once it is there. Raises AssertionError when it never comes."""
        found: dict[str, Any] = self._wait_for(
            lambda: self._call(call_id), f"no record of {call_id}"
        )
        return found

    def call_of(self, answer: Any) -> dict[str, Any]:
        """The record that a response names."""
        return self.call(answer.headers["x-helmdash-call-id"])

    def call_to(self, model: str) -> dict[str, Any]:
        """The newest call to a model that only this test asks, as lists show it."""
        return self.calls_to(model)[0]

    def calls_to(self, model: str, *, count: int = 1) -> list[dict[str, Any]]:
        """A model's calls as lists show them, newest first, once there are `count`."""

        def find() -> list[dict[str, Any]] | None:
            answer = self.api.get("/calls", params={"model": model}).raise_for_status()
            items: list[dict[str, Any]] = answer.json()["items"]
            return items if len(items) >= count else None

        found: list[dict[str, Any]] = self._wait_for(find, f"not {count} records of {model}")
        return found

    def _call(self, call_id: str) -> dict[str, Any] | None:
        answer = self.api.get(f"/calls/{call_id}")
        return answer.json() if answer.status_code == 200 else None

    def _wait_for(self, look: Callable[[], Any], complaint: str) -> Any:
        deadline = time.monotonic() + _RECORD_SECONDS
        while (found := look()) is None:
            assert time.monotonic() < deadline, f"{complaint}; the server says: {self.served.log}"
            time.sleep(_LOOK_SECONDS)
        return found


def open_http(url: str, key: str) -> httpx.Client:
    """A plain HTTP client. Nothing here speaks TLS, and reading certificates takes 20 ms."""
    headers = {"authorization": f"Bearer {key}"}
    return httpx.Client(base_url=url, headers=headers, timeout=30, trust_env=False, verify=False)


def model_of(provider: str, behaviour: str = "plain", mark: str = "") -> str:
    """`openai/gpt-plain.mark`"""
    name = f"{provider}/{_PREFIXES[provider]}-{behaviour}"
    return f"{name}.{mark}" if mark else name


def budgets() -> list[dict[str, Any]]:
    """Rows for the simulated models; the tiny ones take a sentence."""
    rows = []
    for provider, prefix in _PREFIXES.items():
        for key, tokens in ((f"{prefix}-", WINDOW_TOKENS), (f"{prefix}-tiny", TINY_TOKENS)):
            rows.append(
                {
                    "key": f"{provider}/{key}",
                    "input_tokens": tokens,
                    "output_tokens": 4000,
                    "tier": "A",
                    "context_length": WINDOW_TOKENS,
                    "evidence": "the simulated servers of the tests",
                }
            )
    return rows


# Keys beside the first one: in another project, without the right scope, and to be revoked.
STRANGER, READER, REVOKED = (f"hd_test_{name}_9b2f61" for name in ("stranger", "reader", "gone"))
OTHER_PROJECT = "other-house"
IMPATIENT, CAREFUL = "impatient", "careful"
_FURNISH = """
from helmdash.records.models import ApiKey, Project, Upstream
from helmdash.records.access.secrets import seal
own = Project.objects.get(is_default=True)
other = Project.objects.create(slug={other!r}, name="Other")
for name, secret, project, scopes in (
    ("stranger", {stranger!r}, other, ["record", "read"]),
    ("reader", {reader!r}, own, ["read"]),
    ("gone", {revoked!r}, own, ["record"]),
):
    key = ApiKey(name=name, project=project, scopes=scopes)
    key.issue(secret)
    key.save()
for name, allows, seconds, models, url, formats in (
    ({impatient!r}, True, 1, "gpt-hang*", {url!r}, ""),
    ({careful!r}, False, 600, "gpt-none", {url!r}, ""),
    ({responses!r}, True, 600, "answer-*", {responses_url!r}, "responses"),
    ({plain_responses!r}, True, 600, "answer-none", {plain_url!r}, "responses"),
):
    Upstream.objects.create(
        name=name, kind="openai", base_url=url, key_variable="OPENAI_API_KEY",
        allow_private=allows, read_timeout_s=seconds, models_served=models, formats=formats,
    )
Upstream.objects.create(
    name={own_responses!r}, kind="openai", base_url={responses_url!r}, project=own,
    key_encrypted=seal({own_key!r}), allow_private=True, models_served="answer-*",
    formats="chat responses",
)
"""


def furnish(served: Served, fleet: Fleet) -> None:
    """Add what only the admin can: another project, keys, an upstream that waits a second
    only, and one that may not call private addresses."""
    code = _FURNISH.format(
        other=OTHER_PROJECT,
        stranger=STRANGER,
        reader=READER,
        revoked=REVOKED,
        impatient=IMPATIENT,
        careful=CAREFUL,
        url=f"{fleet.openai.root_url}/v1",
        responses=RESPONSES,
        own_responses=OWN_RESPONSES,
        own_key=KEYS["openai"],
        responses_url=f"{fleet.responses.root_url}/v1",
        plain_responses=PLAIN_RESPONSES,
        plain_url=f"{fleet.responses.root_url}/v1".replace("127.0.0.1", responses.PLAIN_HOST),
    )
    done = served.manage("shell", "-c", code)
    assert done.returncode == 0, done.stderr
    time.sleep(1.0)  # what holds for a key is at most 0.9 s old
