"""A small OpenID Connect provider: it vouches at once, for whom and with what it is told."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from joserfc import jwt
from joserfc.jwk import ECKey

CLIENT_ID, CLIENT_SECRET = "helmdash", "the-client-secret"


@dataclass(slots=True)
class OidcProvider:
    """claims: of the next ID token, over the usual ones; None takes one away. key: signs it."""

    issuer: str = ""
    claims: dict[str, Any] = field(default_factory=dict)
    key: ECKey = field(default_factory=lambda: _new_key("first"))
    published: list[ECKey] = field(default_factory=list)
    asked: list[dict[str, str]] = field(default_factory=list)
    """What each visit to the sign-in page of the provider said."""

    def configuration(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
        }

    def keys(self) -> dict[str, Any]:
        keys = self.published or [self.key]
        return {"keys": [key.as_dict(private=False) for key in keys]}

    def new_key(self, name: str, *, is_published: bool = True) -> None:
        """Sign with another key from now on."""
        before = self.key
        self.key = _new_key(name)
        self.published = [self.key if is_published else before]

    def token(self, body: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        """The answer to a code, with the secret and the verifier checked as the standard has it."""
        secret = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
        digest = hashlib.sha256(body.get("code_verifier", "").encode()).digest()
        asked = self.asked[-1]
        is_right = (
            authorization == f"Basic {secret}"
            and body.get("code") == "the-code"
            and body.get("redirect_uri") == asked["redirect_uri"]
            and asked["code_challenge_method"] == "S256"
            and asked["code_challenge"] == base64.urlsafe_b64encode(digest).decode().rstrip("=")
        )
        if not is_right:
            return 400, {"error": "invalid_grant"}
        now = int(time.time())
        usual = {"iss": self.issuer, "sub": "subject-1", "aud": CLIENT_ID, "iat": now}
        usual |= {"exp": now + 60, "nonce": asked["nonce"], "preferred_username": "vera"}
        claims = {name: value for name, value in (usual | self.claims).items() if value is not None}
        header = {"alg": "ES256", "kid": self.key.kid}
        signed = jwt.encode(header, claims, self.key)
        return 200, {"access_token": "at", "token_type": "Bearer", "id_token": signed}


@contextmanager
def run_provider() -> Iterator[OidcProvider]:
    """It listens on a free port of this machine until the end."""
    provider = OidcProvider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            if parts.path == "/authorize":
                provider.asked.append({k: v[0] for k, v in parse_qs(parts.query).items()})
                return self._send(200, {})
            answers = {
                "/.well-known/openid-configuration": provider.configuration,
                "/keys": provider.keys,
            }
            return self._send(200, answers[parts.path]())

        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers["Content-Length"])).decode()
            body = {name: values[0] for name, values in parse_qs(text).items()}
            self._send(*provider.token(body, self.headers.get("Authorization", "")))

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

        def _send(self, status: int, body: dict[str, Any]) -> None:
            sent = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider.issuer = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _new_key(name: str) -> ECKey:
    return ECKey.generate_key("P-256", {"kid": name, "use": "sig", "alg": "ES256"})
