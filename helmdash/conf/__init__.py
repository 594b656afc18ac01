"""Typed settings: `HELMDASH_*` (and HOST, PORT, DATABASE_URL), read once and checked.

The one place that reads the environment, so that a bad value stops the start with one clear line
and `manage.py settings_help` can list them all.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from helmdash.conf.mailed_links import mailed_base
from helmdash.conf.signing_key import SECRET_KEY_FILE, keep_no_new_key, secret_key
from helmdash.conf.urls import database_url_problem, masked
from helmdash.conf.variables import (
    PREFIX,
    BadSetting,
    Env,
    given_variable,
    variable_name,
    variable_names,
)
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

# What the rest of HelmDash asks of this package.
__all__ = [
    "SECRET_KEY_FILE",
    "WRITER_SOCKET",
    "BadSetting",
    "Env",
    "apprise_urls",
    "database_url_problem",
    "env",
    "environment_key",
    "environment_key_variable",
    "environment_upstreams",
    "given_variable",
    "idle_variables",
    "keep_no_new_key",
    "mailed_base",
    "masked",
    "name_writer_socket",
    "ollama_host",
    "read_env",
    "secret_key",
    "shown",
    "unknown_variables",
    "unused_proxies",
    "variable_name",
    "variable_names",
    "writer_socket",
]

WRITER_SOCKET = f"{PREFIX}WRITER_SOCKET"
# What clients, and the commands of README and pages, read in the shell that a server starts in.
_CLIENT_VARIABLES = frozenset({f"{PREFIX}API_KEY", f"{PREFIX}URL"})
_PROXIES = frozenset({"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"})

# Never shown, not even where they are wrong.
_SECRETS = frozenset(
    {
        "admin_password",
        "apprise_urls",
        "bootstrap_api_key",
        "oidc_client_secret",
        "otlp_export_headers",
        "secret_key",
    }
)

# What each of these adds something to.
_WANTED = {
    "mail_from": "smtp_url",
    "otlp_export_headers": "otlp_export_url",
    **{
        f"oidc_{each}": "oidc_issuer"
        for each in ("client_id", "client_secret", "scopes", "claim", "roles", "name")
    },
}


def read_env() -> Env:
    """Read and check the environment. Raises BadSetting: it names each wrong variable."""
    try:
        found = Env()
    except ValidationError as error:
        lines = []
        for problem in error.errors(include_url=False):
            where = str(problem["loc"][0])
            fields = (f for f in Env.model_fields if where == f or where in variable_names(f))
            field = next(fields, where)
            name = given_variable(field) or where
            lines.append(f"{name}={_shown(field, problem.get('input'))}: {_plain(problem)}")
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
    """HELMDASH_* variables that no setting reads, and no client: most likely a spelling mistake.

    One phrase for each, without a full stop.
    """
    known = {name for field in Env.model_fields for name in variable_names(field)}
    # Set by our own tools, not by operators.
    known |= {f"{PREFIX}TEST_DB", WRITER_SOCKET}
    lines = []
    for name in sorted(os.environ):
        if name.startswith(PREFIX) and name not in known | _CLIENT_VARIABLES:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f" (did you mean {close[0]}?)" if close else ""
            lines.append(f"{name} is not a setting{hint}")
    return lines


def idle_variables(settings: Env) -> list[str]:
    """Variables that are set and do nothing, for another one is not set.

    One phrase for each, without a full stop.
    """
    return [
        f"{name} does nothing, for {variable_name(wanted)} is not set"
        for field, wanted in _WANTED.items()
        if (name := given_variable(field)) and not getattr(settings, wanted)
    ]


def unused_proxies() -> list[str]:
    """Variables that name a proxy to other programs, and that we do not read: the guard looks
    at the address of each connection, which behind a proxy is the proxy's own."""
    return [name for name in sorted(os.environ) if name.upper() in _PROXIES and os.environ[name]]


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


def writer_socket() -> str:
    """Where the host's writer process listens; "" where `manage.py up` did not start this one."""
    return os.environ.get(WRITER_SOCKET, "")


def name_writer_socket(path: str) -> None:
    """Tell this process, and those it starts from now on, where it listens; "": nowhere."""
    if path:
        os.environ[WRITER_SOCKET] = path
    else:
        os.environ.pop(WRITER_SOCKET, None)


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


def _plain(problem: ErrorDetails) -> str:
    """What is wrong with a value, as people say it."""
    told = problem.get("ctx", {})
    match problem["type"]:
        case "int_parsing" | "int_from_float" | "int_parsing_size":
            return "must be a whole number"
        case "bool_parsing":
            return "must be 1 or 0 (true, false, yes, no, on, off)"
        case "greater_than_equal":
            return f"must be at least {told['ge']}"
        case "less_than_equal":
            return f"must be at most {told['le']}"
        case "literal_error":
            return f"must be {told['expected']}"
        case "string_too_long":
            return f"may have at most {told['max_length']} characters"
        case _:
            return problem["msg"].removeprefix("Value error, ").removeprefix("Input ")
