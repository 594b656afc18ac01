"""Sign-in by an OpenID Connect provider: the code flow with PKCE, state and nonce.

Authlib does the protocol, joserfc the signatures; here is what they are asked. The provider is the
operator's own choice, from the environment: nothing that a visitor sends leads a request anywhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from threading import BoundedSemaphore, Lock
from typing import Any, Final, TypeVar
from urllib.parse import parse_qs, urlsplit

import httpx2
from authlib.common.security import generate_token
from authlib.integrations.base_client import OAuthError
from authlib.integrations.httpx_client import OAuth2Client
from authlib.oauth2 import OAuth2Error
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

Result = TypeVar("Result")

# Asymmetric ones only: a token that is signed with the client's secret proves less.
_ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "ES512", "EdDSA")
_TIMEOUT_S: Final = 10.0
_LEEWAY_S: Final = 60
# Providers change their keys now and then, and their addresses hardly ever.
_KNOWN_FOR_S: Final = 3600.0
_LARGEST_ANSWER: Final = 1024 * 1024
# Each holds a thread of this process, for a timeout's length where the provider hangs. One that
# answers does so in some tenths of a second: this many at once are a dozen sign-ins a second.
MOST_AT_ONCE: Final = 4


class OidcFailed(Exception):
    """The provider is out of reach, or cannot be trusted; the message is for logs."""


class OidcBusy(OidcFailed):
    """So many requests wait for the provider that another one had better come again later."""

    wait_s = int(_TIMEOUT_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """Who is trusted, and what we are known as there. client_secret empty: a public client."""

    issuer: str
    client_id: str
    client_secret: str
    scopes: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A sign-in under way: `url` is where the browser goes, the rest must come back with it."""

    url: str
    state: str
    nonce: str
    verifier: str


def begin(provider: Provider, *, redirect_uri: str) -> Begun:
    """Where to send the browser. Raises OidcFailed where the provider cannot be reached, and
    OidcBusy where MOST_AT_ONCE requests wait for it."""

    def work() -> Begun:
        verifier, nonce = generate_token(64), generate_token(32)
        with _client(provider, redirect_uri) as client:
            url, state = client.create_authorization_url(
                _told(provider)["authorization_endpoint"], code_verifier=verifier, nonce=nonce
            )
        return Begun(url=url, state=state, nonce=nonce, verifier=verifier)

    return _checked(work)


def finish(
    provider: Provider, *, redirect_uri: str, answer: str, state: str, nonce: str, verifier: str
) -> Mapping[str, Any]:
    """The claims of the ID token about whoever came back with `answer`, the whole address.

    Raises OidcFailed for anything that is not exactly as it was begun, and OidcBusy, before the
    code is used, where MOST_AT_ONCE requests wait for the provider.
    """

    def work() -> Mapping[str, Any]:
        told = _told(provider)
        said = parse_qs(urlsplit(answer).query)
        if "code" not in said:
            raise OidcFailed(f"the provider gave no code: {said.get('error', ['no reason'])[0]}")
        with _client(provider, redirect_uri) as client:
            token = client.fetch_token(
                told["token_endpoint"],
                authorization_response=answer,
                state=state,
                code_verifier=verifier,
                grant_type="authorization_code",
            )
        return _claims(provider, token, nonce)

    return _checked(work)


def forget() -> None:
    """Know nothing of any provider: for tests."""
    with _lock:
        _known.clear()


def _checked(work: Callable[[], Result]) -> Result:
    try:
        with _turn():
            return work()
    except (httpx2.HTTPError, httpx2.InvalidURL, OAuthError, OAuth2Error, JoseError) as error:
        raise OidcFailed(f"{type(error).__name__}: {error}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise OidcFailed(f"the provider's answer makes no sense: {error!r}") from error


@contextmanager
def _turn() -> Iterator[None]:
    """A place to wait for the provider. Raises OidcBusy where all are taken."""
    if not _places.acquire(blocking=False):
        raise OidcBusy(f"{MOST_AT_ONCE} requests wait for the provider")
    try:
        yield
    finally:
        _places.release()


_places = BoundedSemaphore(MOST_AT_ONCE)


def _client(provider: Provider, redirect_uri: str) -> OAuth2Client:
    return OAuth2Client(
        client_id=provider.client_id,
        client_secret=provider.client_secret or None,
        scope=provider.scopes,
        redirect_uri=redirect_uri,
        code_challenge_method="S256",
        timeout=_TIMEOUT_S,
        follow_redirects=False,
    )


def _claims(provider: Provider, token: Mapping[str, Any], nonce: str) -> Mapping[str, Any]:
    try:
        read = jwt.decode(token["id_token"], _keys(provider), algorithms=_ALGORITHMS)
    except (JoseError, ValueError):
        # Perhaps it is signed with a new key.
        read = jwt.decode(token["id_token"], _keys(provider, anew=True), algorithms=_ALGORITHMS)
    claims = CodeIDToken(
        read.claims,
        read.header,
        options={
            "iss": {"essential": True, "value": _told(provider)["issuer"]},
            "aud": {"essential": True, "value": provider.client_id},
        },
        params={
            "nonce": nonce,
            "client_id": provider.client_id,
            "access_token": token.get("access_token"),
        },
    )
    claims.validate(leeway=_LEEWAY_S)
    return dict(claims)


# --- what the provider publishes ----------------------------------------------------------------

_lock = Lock()
# Address -> (when to ask again, what was answered).
_known: dict[str, tuple[float, Mapping[str, Any]]] = {}


def _told(provider: Provider) -> Mapping[str, Any]:
    """Its own description of itself, which has to name the issuer that is trusted."""
    told = _fetched(f"{provider.issuer.rstrip('/')}/.well-known/openid-configuration")
    if str(told["issuer"]).rstrip("/") != provider.issuer.rstrip("/"):
        raise ValueError("it calls itself by another issuer's name")
    return told


def _keys(provider: Provider, *, anew: bool = False) -> KeySet:
    return KeySet.import_key_set(
        {"keys": _fetched(str(_told(provider)["jwks_uri"]), anew=anew)["keys"]}
    )


def _fetched(url: str, *, anew: bool = False) -> Mapping[str, Any]:
    moment = time.monotonic()
    with _lock:
        until, known = _known.get(url, (0.0, {}))
    if moment < until and not anew:
        return known
    with httpx2.Client(timeout=_TIMEOUT_S, follow_redirects=False) as client:
        answer = client.get(url, headers={"Accept": "application/json"})
    answer.raise_for_status()
    if len(answer.content) > _LARGEST_ANSWER:
        raise ValueError("it is too long")
    found = answer.json()
    if not isinstance(found, dict):
        raise TypeError("it is no object")
    with _lock:
        _known[url] = (moment + _KNOWN_FOR_S, found)
    return found
