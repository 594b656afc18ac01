"""Why a request goes no further, in no protocol's words yet.

    Fault
    ├── NoKey            401  no key came along
    ├── UnknownKey       401  none of the keys is one of ours, or it was revoked
    ├── ExpiredKey       401  the key was ours until a moment that it was given
    ├── TooManyWrongKeys 429  this address was wrong about keys too often lately
    ├── TooManyRequests  429  this key asks more often than it may
    ├── TooManyTries     429  this address has to wait before it tries to sign in again
    ├── KeysUnavailable  503  the database that knows the keys does not respond
    ├── SessionsUnavailable 503  the database that knows who is signed in does not respond
    ├── DatabaseUnavailable 503  the database that the request needs does not respond
    ├── BadBody          400  the body is not the JSON that is wanted
    ├── BodyPacked       415  the body is compressed, or in a way that is not read here
    ├── BodyNotUnpacked  400  the body is not what its Content-Encoding says
    ├── UnpackingTooSlow 503  unpacking the body took too long
    ├── BodyTooLarge     413  more bytes than this caller may send
    ├── BodyTooSlow      408  the body did not arrive in time
    └── BodiesFull       503  too many bytes of bodies are held, by all or by this caller

Each face has one function that puts a Fault into its protocol: a status, a word for programs
(`code`), a sentence for people, and how long to wait (`retry_after_s`).
"""

from __future__ import annotations

from datetime import datetime

from helmdash.installation import COMMAND


class Fault(Exception):
    """A request that goes no further. The message is the sentence a client is shown."""

    status = 400
    code = "malformed"
    # Seconds until another try has a chance; None where waiting does not help.
    retry_after_s: int | None = None


class NoKey(Fault):
    """No key came along, in any of the ways that are known."""

    status = 401
    code = "unauthorized"

    def __init__(self) -> None:
        super().__init__(
            "Send a HelmDash API key as your client sends its own: "
            "`Authorization: Bearer KEY`, `x-api-key` or `x-goog-api-key`. "
            f"`{COMMAND} apikey create --name NAME` makes one."
        )


class UnknownKey(Fault):
    """A key came along, and it is not one of ours (any more)."""

    status = 401
    code = "unauthorized"

    def __init__(self) -> None:
        super().__init__(
            "The API key is unknown or revoked. HelmDash wants a key of its own, not one of a "
            f"provider: make one with `{COMMAND} apikey create --name NAME`."
        )


class ExpiredKey(Fault):
    """The key was ours, and its time is over."""

    status = 401
    code = "unauthorized"

    def __init__(self, name: str, expired_at: datetime) -> None:
        super().__init__(
            f"The API key {name} expired at {expired_at:%Y-%m-%dT%H:%M:%SZ}. "
            f"Make another with `{COMMAND} apikey create --name NAME`."
        )


class TooManyWrongKeys(Fault):
    """So many keys of this address were wrong that others are not even looked up."""

    status = 429
    code = "too_many_requests"

    def __init__(self, wait_s: int) -> None:
        self.retry_after_s = wait_s
        super().__init__(
            "Too many wrong API keys came from this address "
            f"(HELMDASH_WRONG_TRIES_PER_MINUTE). Try again in {wait_s} seconds."
        )


class TooManyRequests(Fault):
    """The key is good; this process answers only so many of its requests a second."""

    status = 429
    code = "too_many_requests"

    def __init__(self, wait_s: int, per_second: int) -> None:
        self.retry_after_s = wait_s
        super().__init__(
            f"More than {per_second} requests a second (HELMDASH_REQUESTS_PER_SECOND). "
            "Try again in a moment."
        )


class TooManyTries(Fault):
    """So many passwords of this address were wrong that it has to wait."""

    status = 429
    code = "too_many_requests"

    def __init__(self, wait_s: int) -> None:
        self.retry_after_s = wait_s
        super().__init__(
            f"Too many wrong passwords came from this address. Wait {wait_s} seconds, then try "
            f"again. A sign-in link works meanwhile: `{COMMAND} up --setup-only` shows one."
        )


class KeysUnavailable(Fault):
    """The key may be good; nobody can say just now."""

    status = 503
    code = "unavailable"
    retry_after_s = 1

    def __init__(self) -> None:
        super().__init__("The API key cannot be checked just now: the database is unavailable.")


class SessionsUnavailable(Fault):
    """Somebody may be signed in; nobody can say just now."""

    status = 503
    code = "unavailable"
    retry_after_s = 5

    def __init__(self) -> None:
        super().__init__("Your session cannot be checked just now: the database is unavailable.")


class DatabaseUnavailable(Fault):
    """The database says nothing; what the request asks for cannot be done just now."""

    status = 503
    code = "unavailable"
    retry_after_s = 5

    def __init__(self) -> None:
        super().__init__("The database is unavailable. Try again in 5 s.")


class BadBody(Fault):
    """The body is here, and it is not a JSON text, or none that can be kept."""

    status = 400
    code = "malformed"


class BodyPacked(Fault):
    """The body is compressed, or coded otherwise."""

    status = 415
    code = "unsupported_media_type"

    def __init__(self, *, others: str = "") -> None:
        """others: what may be sent instead, besides a plain body, such as "gzip or deflate"."""
        super().__init__(
            f"Send the body as it is, or as {others} (Content-Encoding)."
            if others
            else "Send the body without Content-Encoding; compressed bodies are not read."
        )


class BodyNotUnpacked(Fault):
    """The body is not what its Content-Encoding says; sent again it would not be either."""


class UnpackingTooSlow(Fault):
    """Unpacking the body took too long; the same may be sent again."""

    status = 503
    code = "unavailable"
    # Whoever sends such bodies waits so long by themselves.
    retry_after_s = 5

    def __init__(self) -> None:
        super().__init__("Unpacking the body took too long.")


class BodyTooLarge(Fault):
    """More bytes than one body may have, by a setting; is_set=False: by the face that reads it."""

    status = 413
    code = "body_too_large"

    def __init__(self, limit_bytes: int, *, is_signed_in: bool = True, is_set: bool = True) -> None:
        setting = "HELMDASH_MAX_BODY_BYTES" if is_signed_in else "HELMDASH_MAX_ANONYMOUS_BODY_BYTES"
        named = f" ({setting})" if is_set else " here"
        super().__init__(
            f"A body may have at most {limit_bytes} bytes{named}. Send it in smaller parts."
        )


class BodyTooSlow(Fault):
    """The whole body was not here in time."""

    status = 408
    code = "request_timeout"

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"The request's body did not arrive within {seconds:g} seconds (HELMDASH_BODY_SECONDS)."
        )


class BodiesFull(Fault):
    """There is no memory for this body just now; `of_caller`: the caller itself holds too much."""

    status = 503
    code = "unavailable"
    retry_after_s = 1

    def __init__(self, *, of_caller: bool) -> None:
        whose = "Too many large requests of yours" if of_caller else "Too many large requests"
        super().__init__(f"{whose} are under way. Try again in a moment.")
