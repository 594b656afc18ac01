"""Upstreams that the environment names: the variables of the official SDKs and of Ollama.

Pure: the variables are passed in.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address

from helmdash.core.upstreams.addresses import address_of, url_problem
from helmdash.core.upstreams.endpoints import Endpoint, EndpointSource, ProviderKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A provider that its SDK's variables configure. The first variable that is set counts."""

    name: str
    kind: ProviderKind
    base_url: str
    key_variables: tuple[str, ...]
    url_variables: tuple[str, ...]


KNOWN: tuple[Known, ...] = (
    Known(
        name="openai",
        kind=ProviderKind.OPENAI,
        base_url="https://api.openai.com/v1",
        key_variables=("OPENAI_API_KEY",),
        url_variables=("OPENAI_BASE_URL",),
    ),
    Known(
        name="anthropic",
        kind=ProviderKind.ANTHROPIC,
        base_url="https://api.anthropic.com",
        key_variables=("ANTHROPIC_API_KEY",),
        url_variables=("ANTHROPIC_BASE_URL",),
    ),
    Known(
        name="openrouter",
        kind=ProviderKind.OPENAI,
        base_url="https://openrouter.ai/api/v1",
        key_variables=("OPENROUTER_API_KEY",),
        url_variables=("OPENROUTER_BASE_URL",),
    ),
    Known(
        name="gemini",
        kind=ProviderKind.GEMINI,
        base_url="https://generativelanguage.googleapis.com/v1beta",
        # google-genai prefers GOOGLE_API_KEY, but that one often holds a key for something else.
        key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        url_variables=("GEMINI_BASE_URL", "GOOGLE_GEMINI_BASE_URL"),
    ),
    Known(
        name="deepseek",
        kind=ProviderKind.OPENAI,
        base_url="https://api.deepseek.com/v1",
        key_variables=("DEEPSEEK_API_KEY",),
        url_variables=("DEEPSEEK_BASE_URL",),
    ),
    Known(
        name="groq",
        kind=ProviderKind.OPENAI,
        base_url="https://api.groq.com/openai/v1",
        key_variables=("GROQ_API_KEY",),
        url_variables=("GROQ_BASE_URL",),
    ),
    Known(
        name="mistral",
        kind=ProviderKind.OPENAI,
        base_url="https://api.mistral.ai/v1",
        key_variables=("MISTRAL_API_KEY",),
        url_variables=("MISTRAL_BASE_URL",),
    ),
)

OLLAMA_HOST = "OLLAMA_HOST"
OLLAMA_KEY = "OLLAMA_API_KEY"
_OLLAMA_PORT = 11434

# Every variable that is read here.
VARIABLES = (
    *(name for known in KNOWN for name in (*known.key_variables, *known.url_variables)),
    OLLAMA_HOST,
    OLLAMA_KEY,
)

_AUTHORITY = re.compile(r"(?P<scheme>https?)://(?P<authority>[^/?#]*)(?P<path>.*)", re.I)
_HOST_PORT = re.compile(r"(?P<host>\[[^\]]*\]|[^:]*)(?::(?P<port>[0-9]+))?")
# Names that no resolver may lead anywhere else (RFC 6761, 6.3).
_LOCAL_NAME = re.compile(r"(?:[a-z0-9_-]+\.)*localhost\.?", re.I)

# From the scheme, if there is one, to the last @.
_HIDDEN = re.compile(r"^((?:[a-z][a-z0-9+.-]*:/*)?).*@", re.I | re.S)
_KEY_NAME = re.compile(r"[A-Z][A-Z0-9_]*_(?:KEY|TOKEN|SECRET)")
# RFC 9110, 5.5. A key travels in a header.
_NEVER_IN_A_HEADER = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
# What a server's environment holds besides keys of providers.
_NOT_A_PROVIDERS = re.compile(
    r"(?:HELMDASH|DJANGO|AWS)_.*|.*(?:PASSWORD|DATABASE).*"
    r"|(?:.*_)?(?:SECRET|PRIVATE|SIGNING|ENCRYPTION|SESSION|ACCESS)_KEY"
)


def endpoints_of(
    variables: Mapping[str, str], *, allow_private: bool, own_hosts: Collection[str] = ()
) -> tuple[Endpoint, ...]:
    """The endpoints that these variables configure, in a fixed order.

    `allow_private`: they may be in a private network. One that a variable puts on this machine
    always may be there: whoever sets the variable starts this server, too.

    `own_hosts` are where this server listens (`host:port`): a variable that points clients at
    HelmDash must not make HelmDash call itself.
    """
    found = [_known(known, variables, allow_private=allow_private) for known in KNOWN]
    found.append(_ollama(variables, allow_private=allow_private))
    return tuple(
        endpoint for endpoint in found if endpoint and host_of(endpoint.base_url) not in own_hosts
    )


def variable_problems(variables: Mapping[str, str]) -> tuple[str, ...]:
    """A line for each variable whose address can never be called, or whose key can never be sent.

    >>> variable_problems({"OPENAI_BASE_URL": "ftp://x"})
    ("OPENAI_BASE_URL='ftp://x': It must start with http:// or https://.",)
    """
    lines: list[str] = []
    for name in (name for known in KNOWN for name in known.url_variables):
        value = variables.get(name, "").strip()
        problem = url_problem(value.rstrip("/"), allow_private=True) if value else None
        if problem:
            lines.append(f"{name}={_shown(value)!r}: {problem}")
    host = variables.get(OLLAMA_HOST, "").strip()
    problem = url_problem(ollama_url(host), allow_private=True) if host else None
    if problem:
        lines.append(f"{OLLAMA_HOST}={_shown(host)!r}: {problem}")
    for name in (*(name for known in KNOWN for name in known.key_variables), OLLAMA_KEY):
        # Blanks around it are left off, as a file's last line end is.
        if _NEVER_IN_A_HEADER.search(variables.get(name, "").strip()):
            lines.append(f"{name}=***: It may not have line breaks or other control characters.")
    return tuple(lines)


def host_of(url: str) -> str:
    """`host:port` of a URL, the port always written; "" where there is none.

    An IPv4 address that IPv6 spells is told as IPv4, so that one host has one name.

    >>> host_of("http://[::ffff:127.0.0.1]/v1")
    '127.0.0.1:80'
    """
    parts = _AUTHORITY.fullmatch(url)
    found = _HOST_PORT.fullmatch(parts["authority"]) if parts else None
    if parts is None or found is None:
        return ""
    port = found["port"] or ("443" if parts["scheme"].lower() == "https" else "80")
    return f"{_plain_host(found['host'])}:{port}"


def is_loopback(url: str) -> bool:
    """Whether a URL names this machine, by the name `localhost` or a loopback address.

    Other names are not looked up: the guard judges the address that each connection is made to.

    >>> is_loopback("http://[::1]:8080/v1"), is_loopback("http://127.0.0.1.example.org")
    (True, False)
    """
    host = host_of(url).rpartition(":")[0]
    if _LOCAL_NAME.fullmatch(host):
        return True
    try:
        return address_of(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _plain_host(host: str) -> str:
    if host.startswith("["):
        with contextlib.suppress(ValueError):
            address = address_of(host.strip("[]"))
            return str(address) if isinstance(address, IPv4Address) else host.lower()
    return host.lower()


def key_variable_of(endpoint: Endpoint, variables: Mapping[str, str]) -> str:
    """The first variable that is set of those which may hold an endpoint's key; "": none is."""
    if endpoint.kind is ProviderKind.OLLAMA:
        return OLLAMA_KEY if _first((OLLAMA_KEY,), variables) else ""
    names = next((known.key_variables for known in KNOWN if known.name == endpoint.name), ())
    return next((name for name in names if variables.get(name, "").strip()), "")


def advice_for(model: str, names: Collection[str]) -> str:
    """Which variable makes an upstream for a model; "" where no variable would.

    `names`: the upstreams that there are.

    >>> advice_for("openai/gpt-4o", ["anthropic"])
    'There is no upstream openai: set OPENAI_API_KEY where HelmDash starts, or add it in the admin.'
    >>> advice_for("openai/gpt-4o", ["openai"]), advice_for("acme/tiny", ["openai"])
    ('', '')
    """
    provider = model.partition("/")[0].lower()
    variables = {known.name: known.key_variables[0] for known in KNOWN} | {"ollama": OLLAMA_HOST}
    if "/" in model and provider in variables and provider not in names:
        missing, which = f" {provider}", variables[provider]
    elif not names:
        missing, which = "", f"a provider's key, such as {KNOWN[0].key_variables[0]},"
    else:
        return ""
    return (
        f"There is no upstream{missing}: set {which} where HelmDash starts, or add it in the admin."
    )


def key_variable_problem(variable: str) -> str | None:
    """Why a variable may not be named as the place of a provider's key; None when it may.

    Whoever edits upstreams chooses the host, too: so no variable may be named that holds anything
    but keys of that kind, such as this server's own.
    """
    if not _KEY_NAME.fullmatch(variable):
        return "It must be in capitals and end in _KEY, _TOKEN or _SECRET, like OPENAI_API_KEY."
    if _NOT_A_PROVIDERS.fullmatch(variable):
        return "This variable does not hold the key of a provider, and may not be sent to one."
    return None


def _known(known: Known, variables: Mapping[str, str], *, allow_private: bool) -> Endpoint | None:
    key = _first(known.key_variables, variables)
    base_url = _first(known.url_variables, variables)
    if not key and not base_url:
        return None
    base_url = (base_url or known.base_url).rstrip("/")
    parts = _AUTHORITY.fullmatch(base_url)
    if known.kind is ProviderKind.OPENAI and parts and not parts["path"]:
        base_url += "/v1"
    return Endpoint(
        name=known.name,
        kind=known.kind,
        base_url=base_url,
        api_key=key,
        allow_private=allow_private or is_loopback(base_url),
        source=EndpointSource.ENVIRONMENT,
    )


def _ollama(variables: Mapping[str, str], *, allow_private: bool) -> Endpoint | None:
    host = _first((OLLAMA_HOST,), variables)
    if not host:
        return None
    base_url = ollama_url(host)
    return Endpoint(
        name="ollama",
        kind=ProviderKind.OLLAMA,
        base_url=base_url,
        api_key=_first((OLLAMA_KEY,), variables),
        allow_private=allow_private or is_loopback(base_url),
        source=EndpointSource.ENVIRONMENT,
    )


def ollama_url(host: str) -> str:
    """The URL that OLLAMA_HOST means: a host, host:port or URL, read as Ollama reads it.

    A server that listens on every address (0.0.0.0, [::]) is called on this machine.
    https://github.com/ollama/ollama/blob/main/envconfig/config.go

    >>> ollama_url("0.0.0.0")
    'http://127.0.0.1:11434'
    """
    scheme, mark, rest = host.strip().strip("\"'").partition("://")
    if not mark:
        scheme, rest = "http", scheme
    authority, slash, path = rest.partition("/")
    if authority.count(":") > 1 and not authority.startswith("["):
        authority = f"[{authority}]"
    found = _HOST_PORT.fullmatch(authority)
    if found is None:
        return host
    name = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(  # noqa: S104
        found["host"], found["host"]
    )
    standard = {"http": 80, "https": 443} if mark else {}
    port = found["port"] or str(standard.get(scheme.lower(), _OLLAMA_PORT))
    return f"{scheme}://{name}:{port}{slash}{path}".rstrip("/")


def _shown(value: str) -> str:
    """An address that may be written wrongly, without what may be a key or a password in it."""
    return _HIDDEN.sub(r"\1[hidden]@", value).partition("?")[0]


def _first(names: tuple[str, ...], variables: Mapping[str, str]) -> str | None:
    return next((value for name in names if (value := variables.get(name, "").strip())), None)
