"""Every variable that HelmDash reads from the environment: typed, checked, and told of."""

from __future__ import annotations

import os
import re
from email.utils import parseaddr
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AliasChoices, Field, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from helmdash import installation
from helmdash.conf.header_list import parse_headers
from helmdash.conf.urls import authority_problem, database_url_problem
from helmdash.core.access.client_address import parse_networks
from helmdash.core.access.oidc_roles import parse_role_rules
from helmdash.core.alerts.apprise_names import parse_named_urls
from helmdash.core.upstreams.addresses import url_problem

PREFIX = "HELMDASH_"
_PORT = re.compile(r"^([^:]*|\[[^]]*\]):[0-9]*$")


def _also_without_prefix(name: str) -> AliasChoices:
    """Such a variable is other programs' as well, and a shell may have it for one of those: with
    the prefix it is ours alone, and goes first."""
    return AliasChoices(PREFIX + name, name)


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
        validation_alias=_also_without_prefix("HOST"),
        description="Address to listen on. 0.0.0.0 listens on every address of the machine. "
        "`HELMDASH_HOST` is the same, and goes first.",
    )
    port: int = Field(
        8000,
        ge=1,
        le=65535,
        validation_alias=_also_without_prefix("PORT"),
        description="TCP port to listen on. `HELMDASH_PORT` is the same, and goes first.",
    )
    database_url: str = Field(
        "",
        validation_alias=_also_without_prefix("DATABASE_URL"),
        description="postgres://user:password@host:port/name moves everything to PostgreSQL. "
        "Empty: SQLite in the data directory. `HELMDASH_DATABASE_URL` is the same, and goes first.",
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
    writer: Literal["auto", "process", "thread"] = Field(
        "auto",
        description="Who stores the calls that the server processes take in. process: one process "
        "of this host, for all of them. thread: a thread in each. auto: the process, once there "
        "are a hundred calls; a thread until then, and where the server was not started by `up`.",
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
        description="The address people reach this server at, such as https://helm.example.org, "
        "without a path. https switches secure cookies on.",
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
        "unavailable. From three quarters on their texts are left out; where it is full no further "
        "model is asked (503).",
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
            value = value.expanduser()
        except RuntimeError:
            raise ValueError("nobody knows this user's home directory; name a directory") from None
        try:
            found: Path | None = value.resolve()
        except RuntimeError:
            found = None
        if found is None or found.is_symlink():  # Python 3.13 leaves such a link as it is
            raise ValueError("its symbolic links lead in a circle")
        return found

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
        value = value.rstrip("/")
        if "@" in value or any(sign in value.partition("://")[2] for sign in "/?#"):
            raise ValueError(
                "may have a host and a port alone, such as https://helm.example.org:8443: "
                "HelmDash has no place below a path"
            )
        return value

    @field_validator("mail_from")
    @classmethod
    def _mail_address(cls, value: str) -> str:
        name, _, host = parseaddr(value)[1].rpartition("@")
        if value and not (name and host and value.isprintable()):
            raise ValueError("must be an address, such as helmdash@example.org")
        return value

    @field_validator("oidc_scopes")
    @classmethod
    def _has_openid(cls, value: str) -> str:
        if "openid" not in value.split():
            raise ValueError("must have openid among them, with blanks between")
        return value

    @field_validator("otlp_export_url")
    @classmethod
    def _receiver(cls, value: str) -> str:
        # Where it may be is the operator's own word.
        problem = url_problem(value.rstrip("/"), allow_private=True) if value else None
        if problem:
            raise ValueError(problem[:1].lower() + problem[1:].rstrip("."))
        return value

    @field_validator("otlp_export_headers")
    @classmethod
    def _headers(cls, value: str) -> str:
        parse_headers(value)
        return value

    @field_validator("smtp_url")
    @classmethod
    def _smtp(cls, value: str) -> str:
        if value and not value.startswith(("smtp://", "smtps://")):
            raise ValueError("must start with smtp:// or smtps://")
        return value

    @field_validator("public_url", "smtp_url", "oidc_issuer")
    @classmethod
    def _authority(cls, value: str) -> str:
        problem = authority_problem(value) if value else None
        if problem:
            raise ValueError(problem)
        return value

    @field_validator("oidc_issuer")
    @classmethod
    def _issuer(cls, value: str) -> str:
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
        # Names are compared without the port that a browser names beside them.
        return tuple(_PORT.sub(r"\1", name) for name in value)

    @field_validator("bootstrap_api_key")
    @classmethod
    def _one_word(cls, value: str) -> str:
        if value != value.strip() or any(c.isspace() for c in value) or not value.isascii():
            raise ValueError("must be one word of ASCII characters, without spaces")
        return value


def variable_names(field: str) -> tuple[str, ...]:
    """The environment variables a field of Env is read from: the first that is set counts."""
    alias = Env.model_fields[field].validation_alias
    if isinstance(alias, AliasChoices):
        return tuple(str(each) for each in alias.choices)
    return (PREFIX + field.upper(),)


def variable_name(field: str) -> str:
    """The one of them that documents and pages name: the shortest."""
    return variable_names(field)[-1]


def given_variable(field: str) -> str | None:
    """The one of them whose value counts; None where none is set."""
    return next((name for name in variable_names(field) if os.environ.get(name)), None)
