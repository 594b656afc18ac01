"""Models that a page may offer: those that upstreams list, and those that were called."""

from __future__ import annotations

from collections.abc import Iterable

from helmdash.providers.registry import is_glob
from helmdash.queries import upstreams
from helmdash.queries.upstreams import UpstreamInfo

# The longest model id the gateway takes.
_MODEL_CHARS = 255


def model_problem(model: str) -> str:
    """What is wrong with a model id that somebody typed, as a sentence; "": nothing."""
    if len(model) > _MODEL_CHARS or not model.isprintable():
        return f"model: use at most {_MODEL_CHARS} printable characters, such as openai/gpt-4o"
    return ""


def usable_upstreams(*, project_id: int) -> tuple[UpstreamInfo, ...]:
    """Upstreams that a call may go to, as far as their rows say. One query."""
    return tuple(filter(_is_usable, upstreams.listing(project_id=project_id)))


def offered_models(usable: Iterable[UpstreamInfo], recorded: Iterable[str]) -> list[str]:
    """`provider/model` of the upstreams there are, without the patterns."""
    found = tuple(usable)
    names = tuple(f"{info.name}/" for info in found)
    listed = [
        f"{info.name}/{model}" for info in found for model in info.models if not is_glob(model)
    ]
    known = [model for model in recorded if model.startswith(names)]
    return list(dict.fromkeys([*listed, *known]))


def _is_usable(info: UpstreamInfo) -> bool:
    return info.enabled and not info.shadowed and info.problem is None
