"""What an Ollama server tells of a model's window (`/api/show`), and `num_ctx` in a request.

Source: https://docs.ollama.com/api/show and /modelfile. The window that a model was trained for is
`model_info["<architecture>.context_length"]`, by exactly this name: another key may well end in the
same words (`….rope.scaling.original_context_length`). What its Modelfile sets is a line of
`parameters`. Nothing is guessed from a model's name: what is not told is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from helmdash.core.upstreams.endpoints import Endpoint
from helmdash.providers.ollama.http import post
from helmdash.providers.protocols import HttpRequest
from helmdash.providers.shared.bodies import read_object, to_json, with_members
from helmdash.providers.shared.reported import list_in, number_of, objects_in, tokens_of
from helmdash.providers.wire import ChatRequest, Json, Object

NUM_CTX = "num_ctx"
_OPTIONS = "options"
_LATEST = ":latest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One model's windows, in tokens; None is unknown."""

    trained_tokens: int | None = None
    configured_tokens: int | None = None  # num_ctx of its Modelfile
    capabilities: tuple[str, ...] = ()

    @property
    def window_tokens(self) -> int | None:
        """The real window in tokens: the smaller of those that are known; None: neither is."""
        known = [n for n in (self.trained_tokens, self.configured_tokens) if n is not None]
        return min(known, default=None)


def show_request(endpoint: Endpoint, model: str) -> HttpRequest:
    """Ask for what the server tells of a model."""
    return post(endpoint, "show", to_json({"model": model}))


def read_show(body: bytes) -> Shown | None:
    """Read the answer of `/api/show`; None for what is none. Never raises."""
    value = read_object(body)
    return shown_in(value) if value is not None else None


def shown_in(value: Object) -> Shown:
    """The same of an answer that has been parsed."""
    return Shown(
        trained_tokens=_trained(value.get("model_info")),
        configured_tokens=_configured(value.get("parameters")),
        capabilities=tuple(
            each for each in list_in(value, "capabilities") if isinstance(each, str)
        ),
    )


def read_running(body: bytes, model: str) -> int | None:
    """The window, in tokens, with which `/api/ps` says that a model is loaded; None where it is
    not, or does not say. Never raises."""
    value = read_object(body) or {}
    wanted = model.lower().removesuffix(_LATEST)
    for entry in objects_in(value, "models"):
        names = [entry.get("name"), entry.get("model")]
        if wanted in [n.lower().removesuffix(_LATEST) for n in names if isinstance(n, str)]:
            return tokens_of(entry.get("context_length"))
    return None


def num_ctx_of(parsed: Object) -> tuple[bool, int | None]:
    """Whether a client's body says `num_ctx`, and the tokens; None: it is no usable number.

    Ollama reads the names of members in any letter case.
    """
    for name, options in parsed.items():
        if name.casefold() != _OPTIONS or not isinstance(options, Mapping):
            continue
        if options.get(NUM_CTX) is not None:
            return True, tokens_of(options[NUM_CTX])
    return False, None


def own_num_ctx(request: ChatRequest) -> tuple[bool, int | None]:
    """As `num_ctx_of`, of a request as it was read, whichever client's format it came in."""
    return num_ctx_of(request.extra)


def with_num_ctx(body: bytes, parsed: Object, num_ctx: int) -> tuple[bytes, Object]:
    """A client's body with `num_ctx` among its options, and what it then says.

    Only the member `options` is written anew; every other byte stays. A body that has a `num_ctx`
    comes back as it is.
    """
    if num_ctx_of(parsed)[0]:
        return body, parsed
    given = parsed.get(_OPTIONS)
    if given is not None and not isinstance(given, Mapping):
        return body, parsed  # the server is to say what is wrong with it
    told: dict[str, Json] = {_OPTIONS: {**(given or {}), NUM_CTX: num_ctx}}
    return with_members(body, parsed, told), {**parsed, **told}


def _trained(info: Json) -> int | None:
    if not isinstance(info, Mapping):
        return None
    architecture = info.get("general.architecture")
    return tokens_of(info.get(f"{architecture}.context_length"))


def _configured(parameters: Json) -> int | None:
    if not isinstance(parameters, str):
        return None
    for line in parameters.splitlines():
        name, _, value = line.strip().partition(" ")
        if name == NUM_CTX and (number := number_of(value.strip())) is not None:
            return tokens_of(number)
    return None
