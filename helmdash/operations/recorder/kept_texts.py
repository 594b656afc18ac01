"""As much of a call as its project keeps: what may lie in a file, for a moment or for long."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from helmdash.core.calls.capture import Capture
from helmdash.core.calls.withheld import without_words
from helmdash.core.text.redaction import Masker
from helmdash.core.text.tokens import utf8_bytes
from helmdash.operations.recording.masking import masker
from helmdash.queries.access import ProjectInfo
from helmdash.records.models import Payload

_TEXTS = ("messages", "content")


def as_kept(capture: Capture, project: ProjectInfo) -> Capture:
    """The capture without the texts that the project does not keep; its figures stay.

    Gives the capture itself where the project keeps all of it.
    """
    if project.payload == Payload.OFF.value:
        return withheld(capture)
    if project.payload == Payload.REDACTED.value:
        return _masked(capture, masker(project))
    return capture


def as_spooled(capture: Capture, project: ProjectInfo) -> Capture:
    """The capture as it may wait in the spool; itself where the project keeps texts.

    Masking takes up to some milliseconds, and whoever writes to the spool is the event loop: texts
    of a project that keeps them masked wait as they are, until they are stored.
    """
    return withheld(capture) if project.payload == Payload.OFF.value else capture


def withheld(capture: Capture) -> Capture:
    """The capture without what was said, by whomever; the lengths stay."""
    kept = without_words(capture)
    if all(getattr(kept, name) is None for name in _TEXTS):
        return kept
    length = kept.raw_content_len
    if length is None and kept.content is not None:
        length = utf8_bytes(kept.content)  # whether a reply was empty is judged by it
    return replace(kept, messages=None, content=None, raw_content_len=length)


def _masked(capture: Capture, mask: Masker) -> Capture:
    parts: dict[str, Any] = {
        name: mask.value(getattr(capture, name))
        for name in ("messages", "metadata", "attempts")
        if getattr(capture, name)
    }
    for name in ("messages", "attempts"):
        if name in parts:
            parts[name] = tuple(parts[name])
    for name in ("content", "error_message"):
        if getattr(capture, name):
            parts[name] = mask.text(getattr(capture, name))
    return replace(capture, **parts)
