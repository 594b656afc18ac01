"""Typed settings: `HELMDASH_*` (and HOST, PORT, DATABASE_URL), read once and checked.

The one place that reads the environment, so that a bad value stops the start with one clear line
and `manage.py settings_help` can list them all.
"""

from __future__ import annotations

import difflib
import errno
import os
import re
import secrets
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from helmdash import installation
from helmdash.core.access.client_address import parse_networks
from helmdash.core.access.oidc_roles import parse_role_rules
from helmdash.core.alerts.apprise_names import parse_named_urls
from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.core.upstreams.upstream_variables import (
    OLLAMA_HOST,
    endpoints_of,
    host_of,
    key_variable_of,
    key_variable_problem,
    variable_problems,
)

PREFIX = "HELMDASH_"

# In the data directory, its owner's alone.
SECRET_KEY_FILE = "secret-key"  # noqa: S105  (a file name)
# Never shown, not even where they are wrong.
_SECRETS = frozenset(
    {"admin_password", "apprise_urls", "bootstrap_api_key", "oidc_client_secret", "secret_key"}
)
# From the first @ to the last: a password may hold one that nobody wrote as %40.
_PASSWORD = re.compile(r"^((?:[a-z][a-z0-9+.-]*:/+)?[^/?#:@]*):.*@", re.I | re.S)
# In what is no URL: all before the last @, and what libpq's own form calls a password.
_BEFORE_HOST = re.compile(r"^.*@", re.S)
_NAMED_PASSWORD = re.compile(r"\b(\w*password\s*=\s*)(?:'[^']*'?|\S+)", re.I)
_OPTIONS = re.compile(r"\?.*", re.S)
# What libpq refuses, quoting it: a lone percent sign, and the character 0.
_BAD_PERCENT = re.compile(r"%(?:00|(?![0-9a-f]{2}))", re.I)


class BadSetting(Exception):
    """A setting has a value HelmDash cannot start with; the message names it and the fix."""


class Env(BaseSettings):
    """What the environment says. Field descriptions are the help texts of `settings_help`."""

    # Set to nothing is the same as not set, as compose files and shells have it.
    model_config = SettingsConfigDict(
        env_prefix=PREFIX, extra="ignore", populate_by_name=True, env_ignore_empty=True
    )

    host: str = Field(
        "127.0.0.1",
        validation_alias="HOST",
        description="Address to listen on. 0.0.0.0 listens on every address of the machine.",
    )
    port: int = Field(
        8000, ge=1, le=65535, validation_alias="PORT", description="TCP port to listen on."
    )
    database_url: str = Field(
        "",
        validation_alias="DATABASE_URL",
        description="postgres://user:password@host:port/name moves everything to PostgreSQL. "
        "Empty: SQLite in the data directory.",
    )
    replica_url: str = Field(
        "",
        description="A replica of DATABASE_URL by streaming, written like it. Pages and reads of "
        "the API take what was recorded from there, while it has all that the primary has. Empty: "
        "all is read from DATABASE_URL.",
    )
    data_dir: Path = Field(
        installation.default_data_dir(),
        description="Where the SQLite file, the secret key and collected static files live. "
        "`var/` is of a checkout; installed by pip or uvx it is `~/.local/share/helmdash/` (macOS: "
        "`~/Library/Application Support/helmdash/`).",
    )
    workers: int = Field(
        1, ge=1, le=64, description="Server processes. More than one wants PostgreSQL."
    )
    bootstrap_api_key: str = Field(
        "",
        description="The first API key. Empty: one is generated and printed once.",
    )
    admin_password: str = Field(
        "",
        description="Password of the first admin, called `admin`. "
        "Empty: one is generated and printed once.",
    )
    secret_key: str = Field(
        "",
        description="Signs sessions and sign-in links. Empty: kept in the data directory.",
    )
    allowed_hosts: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="Host names this server answers to, separated by commas, "
        "besides localhost and HOST.",
    )
    public_url: str = Field(
        "",
        description="The address people reach this server at, such as https://helm.example.org. "
        "https switches secure cookies on.",
    )
    smtp_url: str = Field(
        "",
        description="The mail server, such as smtp://name:password@mail.example.org:587 (STARTTLS) "
        "or smtps://... (TLS from the start). Empty: nobody can have a link for a forgotten "
        "password mailed.",
    )
    mail_from: str = Field(
        "",
        max_length=254,
        description="Whom these mails come from. Empty: helmdash at the host of "
        "HELMDASH_PUBLIC_URL.",
    )
    apprise_urls: str = Field(
        "",
        description="Where alerts may go by Apprise: name=url with blanks between, such as "
        "ops=tgram://TOKEN/CHAT family=ntfy://topic. Owners of projects choose by name. Needs "
        "the extra `helmdash[apprise]`: pip install 'apprise>=2.2'.",
    )
    oidc_issuer: str = Field(
        "",
        # As long as the column that says whose account it is.
        max_length=255,
        description="Sign-in by an OpenID Connect provider: its issuer, such as "
        "https://login.example.org/realms/work. Empty: none.",
    )
    oidc_client_id: str = Field("", max_length=255, description="What it knows HelmDash as.")
    oidc_client_secret: str = Field(
        "", description="Its secret for HelmDash. Empty: a public client; PKCE is always used."
    )
    oidc_scopes: str = Field(
        "openid profile email", max_length=255, description="What is asked of it."
    )
    oidc_claim: str = Field(
        "groups", max_length=255, description="The claim of the ID token that roles are given by."
    )
    oidc_roles: str = Field(
        "",
        description="Roles by that claim: value=project:role, separated by commas; * is everybody, "
        "as in admins=default:owner, *=default:viewer. Empty: who signs in is in no project until "
        "somebody adds them.",
    )
    oidc_name: str = Field(
        "single sign-on", max_length=60, description="What the sign-in page calls it."
    )
    trusted_proxies: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="Addresses and networks, separated by commas, of the proxies in front of this "
        "server, such as 10.0.0.0/8. Only their X-Forwarded-For and X-Forwarded-Proto are "
        "believed.",
    )
    sign_in_tries: int = Field(
        5,
        ge=0,
        le=1000,
        description="Wrong passwords of one account before the next try has to wait: 1 s, 2 s, "
        "4 s and so on, 5 minutes at most. 0: no wait.",
    )
    wrong_tries_per_minute: int = Field(
        20,
        ge=0,
        le=1_000_000,
        description="Wrong API keys of one address (of IPv6: one /64) a minute, for each process, "
        "and wrong passwords of one address before waits that grow to 15 minutes. 0: no limit.",
    )
    requests_per_second: int = Field(
        5000,
        ge=0,
        le=1_000_000,
        description="Requests of one API key a second, for each process; more get 429. "
        "0: no limit.",
    )
    max_body_bytes: int = Field(
        8 * 1024 * 1024, ge=1024, description="Largest request body; more is answered with 413."
    )
    max_anonymous_body_bytes: int = Field(
        64 * 1024,
        ge=1024,
        description="The same for people who are not signed in: the sign-in form is all they send.",
    )
    # Half of it holds one export of OpenTelemetry: 64 MiB as the protocol recommends, and what it
    # was packed into, which may be as much.
    body_memory_bytes: int = Field(
        256 * 1024 * 1024,
        ge=1024 * 1024,
        description="Memory for all bodies that a process reads or works on; one key has at most "
        "half of it. What comes beyond is told to come back (503).",
    )
    body_seconds: int = Field(
        60,
        ge=1,
        le=3600,
        description="How long a body may take to arrive; more is answered with 408. People who are "
        "not signed in have 15 s.",
    )
    max_header_bytes: int = Field(
        32 * 1024,
        ge=4096,
        le=1024 * 1024,
        description="Bytes of all headers of a request; more is answered with 431.",
    )
    max_header_line_bytes: int = Field(
        16 * 1024,
        ge=1024,
        le=1024 * 1024,
        description="Bytes of one header (431), or of the address (414).",
    )
    max_headers: int = Field(
        128, ge=16, le=10_000, description="Headers of a request; more are answered with 431."
    )
    header_seconds: int = Field(
        15,
        ge=1,
        le=3600,
        description="How long the headers of a request may take to arrive; more is answered with "
        "408.",
    )
    idle_seconds: int = Field(
        65,
        ge=1,
        le=3600,
        description="How long a connection may wait for its next request. Longer than a proxy in "
        "front keeps one open (nginx: 60), so that it is the proxy that closes.",
    )
    write_seconds: int = Field(
        60,
        ge=1,
        le=3600,
        description="How long a client may take nothing of an answer before its connection is cut.",
    )
    max_connections: int = Field(
        4000,
        ge=8,
        le=1_000_000,
        description="Open connections of a process; more are answered with 503.",
    )
    max_anonymous_connections: int = Field(
        1000,
        ge=1,
        le=1_000_000,
        description="Of these, connections of one address (of IPv6: one /64) on which no request "
        "with a good key has come yet. Trusted proxies have no such limit.",
    )
    spool_max_bytes: int = Field(
        256 * 1024 * 1024,
        ge=1024 * 1024,
        description="Room in the data directory for calls that wait for a database that is "
        "unavailable. Calls beyond it are lost, and counted.",
    )
    retain_hour: int = Field(
        3,
        ge=-1,
        le=23,
        description="Hour of the day (UTC) from which on a server deletes, once a day, what "
        "projects keep no longer. -1: only `manage.py retain` does.",
    )
    audit_days: int = Field(
        400,
        ge=0,
        le=36_500,
        description="Days for which the audit log keeps who changed what. 0: for ever.",
    )
    stop_seconds: int = Field(
        20,
        ge=1,
        le=3600,
        description="How long calls that are under way may take when the server is asked to stop. "
        "After that their clients are told so.",
    )
    default_model: str = Field(
        "",
        max_length=255,
        description="Model, as provider/model, that plans and routes where the request names none.",
    )
    metrics_open: bool = Field(
        False,
        description="Whether /metrics answers without an API key, for a scraper in a network of "
        "your own.",
    )
    allow_private_upstreams: bool = Field(
        False,
        description="Whether upstreams that the environment names (OPENAI_BASE_URL ...) may be "
        "in a private network. One that a variable puts on this machine always may be there.",
    )
    otlp_export_url: str = Field(
        "",
        max_length=500,
        description="An OTLP/HTTP receiver that recorded calls are exported to, such as "
        "http://localhost:4318. Empty: none but those of the admin.",
    )
    otlp_export_headers: str = Field(
        "",
        description="Its headers, as name=value with commas between: Authorization=Bearer%20KEY.",
    )
    codex_models: bool = Field(
        False,
        description="Whether `GET /v1/models` also has the list `models` that Codex reads. Its "
        "entries replace the client's own instructions: the lines of the page Connect do not.",
    )
    ollama_log: bool = Field(
        True,
        description="Whether calls to Ollama servers are also written, as lines of JSON without "
        "prompts and replies, to logs/ollama in the data directory.",
    )
    ollama_log_days: int = Field(
        14, ge=1, le=3650, description="Days after which files of that log are deleted."
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        "INFO", description="How much the server logs."
    )
    debug: bool = Field(
        False, description="Show error pages with source code. Never on a public address."
    )

    @field_validator("allowed_hosts", "trusted_proxies", mode="before")
    @classmethod
    def _split_hosts(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    @field_validator("trusted_proxies")
    @classmethod
    def _networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        parse_networks(value)
        return value

    @field_validator("log_level", mode="before")
    @classmethod
    def _upper(cls, value: object) -> object:
        return value.upper() if isinstance(value, str) else value

    @field_validator("data_dir")
    @classmethod
    def _absolute(cls, value: Path) -> Path:
        try:
            return value.expanduser().resolve()
        except RuntimeError:
            raise ValueError("nobody knows this user's home directory; name a directory") from None

    @field_validator("host")
    @classmethod
    def _bare_host(cls, value: str) -> str:
        value = value.strip()
        if not value.isascii() or any(sign in value for sign in "/@ []"):
            raise ValueError("must be a host name or an address, without scheme, brackets and port")
        return value

    @field_validator("database_url")
    @classmethod
    def _postgres_or_sqlite(cls, value: str) -> str:
        problem = database_url_problem(value.strip())
        if problem:
            raise ValueError(problem)
        return value.strip()

    @field_validator("replica_url")
    @classmethod
    def _replica_of_postgres(cls, value: str, info: ValidationInfo) -> str:
        value = value.strip()
        # Wrong itself, it is not there.
        if value and not info.data.get("database_url", "postgres").startswith("postgres"):
            raise ValueError("wants DATABASE_URL on PostgreSQL, too: SQLite has no replica")
        problem = database_url_problem(value)
        if problem or value.startswith("sqlite"):
            raise ValueError(problem or "must start with postgres://")
        return value

    @field_validator("public_url")
    @classmethod
    def _http(cls, value: str) -> str:
        if value and not value.startswith(("http://", "https://")):
            raise ValueError("must start with http:// or https://")
        problem = authority_problem(value) if value else None
        if problem:
            raise ValueError(problem)
        return value.rstrip("/")

    @field_validator("smtp_url")
    @classmethod
    def _smtp(cls, value: str) -> str:
        if value and not value.startswith(("smtp://", "smtps://")):
            raise ValueError("must start with smtp:// or smtps://")
        problem = authority_problem(value) if value else None
        if problem:
            raise ValueError(problem)
        return value

    @field_validator("oidc_issuer")
    @classmethod
    def _issuer(cls, value: str) -> str:
        problem = authority_problem(value) if value else None
        if problem:
            raise ValueError(problem)
        is_here = urlsplit(value).hostname in ("localhost", "127.0.0.1", "::1")
        # What is told on the way there and back decides who comes in.
        if value and not value.startswith("https://") and not is_here:
            raise ValueError("must start with https://")
        return value

    @field_validator("oidc_roles")
    @classmethod
    def _role_rules(cls, value: str) -> str:
        parse_role_rules(value)
        return value

    @field_validator("apprise_urls")
    @classmethod
    def _named_urls(cls, value: str) -> str:
        parse_named_urls(value)
        return value

    @field_validator("allowed_hosts")
    @classmethod
    def _host_names(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if "/" in name or "@" in name or any(sign.isspace() for sign in name):
                raise ValueError("must be host names, separated by commas, without scheme and path")
        return value

    @field_validator("bootstrap_api_key")
    @classmethod
    def _one_word(cls, value: str) -> str:
        if value != value.strip() or any(c.isspace() for c in value) or not value.isascii():
            raise ValueError("must be one word of ASCII characters, without spaces")
        return value


def variable_name(field: str) -> str:
    """The environment variable a field of Env is read from."""
    alias = Env.model_fields[field].validation_alias
    return alias if isinstance(alias, str) else PREFIX + field.upper()


def read_env() -> Env:
    """Read and check the environment. Raises BadSetting: it names each wrong variable."""
    try:
        found = Env()
    except ValidationError as error:
        lines = []
        for problem in error.errors(include_url=False):
            where = str(problem["loc"][0])
            field = where if where in Env.model_fields else where.lower()
            name = variable_name(field) if field in Env.model_fields else where
            lines.append(f"{name}={_shown(field, problem.get('input'))}: {_plain(problem['msg'])}")
        raise BadSetting("; ".join(lines)) from None
    problems = list(variable_problems(os.environ))
    if found.oidc_issuer and not found.oidc_client_id:
        problems.append("HELMDASH_OIDC_CLIENT_ID is not set; HELMDASH_OIDC_ISSUER needs it")
    if found.apprise_urls and find_spec("apprise") is None:
        problems.append(
            "HELMDASH_APPRISE_URLS needs a package that is not installed: run "
            "pip install 'apprise>=2.2', or take the setting away"
        )
    if problems:
        raise BadSetting("; ".join(problems))
    return found


@cache
def env() -> Env:
    """The environment of this process, read once."""
    return read_env()


def unknown_variables() -> list[str]:
    """HELMDASH_* variables that no setting reads: most likely a spelling mistake."""
    known = {variable_name(field) for field in Env.model_fields}
    # Set by our own tools, not by operators.
    known |= {f"{PREFIX}TEST_DB"}
    lines = []
    for name in sorted(os.environ):
        if name.startswith(PREFIX) and name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            lines.append(f"{name} is not a setting{hint}")
    return lines


def environment_upstreams() -> tuple[Endpoint, ...]:
    """Upstreams that the environment names (OPENAI_API_KEY, OLLAMA_HOST ...), in a fixed order."""
    settings = env()
    own_names = (settings.host, "127.0.0.1", "localhost", "[::1]")
    own = {f"{host}:{settings.port}" for host in own_names}
    if settings.public_url:
        own.add(host_of(settings.public_url))
    return endpoints_of(os.environ, allow_private=settings.allow_private_upstreams, own_hosts=own)


def apprise_urls() -> Mapping[str, str]:
    """The operator's URLs for Apprise, by name. Secrets."""
    return parse_named_urls(env().apprise_urls)


def ollama_host() -> str:
    """What OLLAMA_HOST says, as it is written; "" where it is not set."""
    return os.environ.get(OLLAMA_HOST, "").strip()


def environment_key_variable(endpoint: Endpoint) -> str:
    """Which variable an endpoint of the environment has its key from; "" for none."""
    return key_variable_of(endpoint, os.environ)


def environment_key(variable: str) -> str | None:
    """The provider's key in a variable; None where it is not set, or may not be named."""
    if key_variable_problem(variable) is not None:
        return None
    return os.environ.get(variable, "").strip() or None


def secret_key(settings: Env) -> str:
    """The signing key: given, or kept owner-only in the data directory and made at first use."""
    if settings.secret_key:
        return settings.secret_key
    path = settings.data_dir / SECRET_KEY_FILE
    try:
        settings.data_dir.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            _make_key(path)
        key = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeError) as error:
        told = error.strerror if isinstance(error, OSError) else "it is no text"
        raise BadSetting(
            f"HELMDASH_DATA_DIR={settings.data_dir}: the secret key cannot be read or made in "
            f"{path}: {told}"
        ) from None
    if not key:
        raise BadSetting(
            f"HELMDASH_DATA_DIR={settings.data_dir}: {path} is empty: restore it from a backup, or "
            "delete it for a new key (stored provider keys are then lost, sessions end)"
        )
    return key


def _make_key(path: Path) -> None:
    """Make a key at the path, owner-only; one that another process made meanwhile stays.

    The file has its name only once it is written: no process finds it half made, also not after a
    power cut.
    """
    key = secrets.token_urlsafe(48)
    handle, written = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(key)
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(written, path)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP):
            raise
        # A file system without hard links, as of a share: the name first, and then what it holds.
        with (
            suppress(FileExistsError),
            os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file,
        ):
            file.write(key)
    finally:
        Path(written).unlink(missing_ok=True)


def database_url_problem(url: str) -> str | None:
    """Why a DATABASE_URL cannot be one, in words; None when it can. Empty is SQLite's own file."""
    if not url:
        return None
    scheme, mark, rest = url.partition("://")
    if scheme == "sqlite" and mark:
        is_path = rest.startswith("/") and rest.strip("/")
        return (
            None if is_path else "must name a file, like sqlite:////var/lib/helmdash/data.sqlite3"
        )
    if scheme not in ("postgres", "postgresql") or not mark:
        return "must start with postgres:// (or sqlite:///path)"
    problem = authority_problem(url, needs_host=False)
    if problem:
        return problem
    if "@" in urlsplit(url).netloc.rpartition("@")[0]:
        return "its user name or password has an @; write it as %40"
    if _BAD_PERCENT.search(url):
        return "has a % that stands for no character; write a percent sign as %25"
    if not urlsplit(url).path.strip("/"):
        return "names no database: postgres://user:password@host:port/name"
    return None


def authority_problem(url: str, *, needs_host: bool = True) -> str | None:
    """Why the host and port of a URL cannot be ones, in words; None when they can."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "its port must be a number from 1 to 65535, and [ ] only around an IPv6 address"
    if port == 0:
        return "its port must be a number from 1 to 65535"
    # Without a host and port libpq takes the socket on this machine.
    if not parts.hostname and (needs_host or port is not None):
        return "names no host"
    if any(sign.isspace() or not sign.isprintable() for sign in url):
        return "may not have spaces or control characters; write them percent-encoded"
    return None


def masked(url: str) -> str:
    """A URL without its password, and without whatever an option of it may hide."""
    hidden, count = _PASSWORD.subn(r"\1:***@", url)
    if not count and "://" not in url:
        hidden = _NAMED_PASSWORD.sub(r"\1***", _BEFORE_HOST.sub("***@", url))
    return _OPTIONS.sub("", hidden)


def shown(field: str, settings: Env) -> str:
    """The value of a setting for whoever reads a report: a secret one as ***."""
    return _shown(field, getattr(settings, field))


def _shown(field: str, value: object) -> str:
    if field in _SECRETS:
        return "***"
    if field.endswith("_url"):
        return repr(masked(str(value)))
    text = str(value) if isinstance(value, Path) else repr(value)
    return text if len(text) <= 200 else text[:199] + "…"


def _plain(message: str) -> str:
    return message.removeprefix("Value error, ").removeprefix("Input ")
