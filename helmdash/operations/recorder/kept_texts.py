"""As much of a call as its project keeps: what may lie in a file, for a moment or for long."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple, cast

import orjson

from helmdash.core.calls.capture import Capture
from helmdash.core.calls.withheld import without_words
from helmdash.core.text.redaction import Masker
from helmdash.core.text.tokens import utf8_bytes
from helmdash.operations.recorder.capture_json import (
    NOT_STORED,
    dump_capture,
    dump_figures,
    text_line,
    without_texts,
)
from helmdash.operations.recording.judged.masking import masker
from helmdash.queries.access.access import ProjectInfo
from helmdash.records.access.secrets import seal_text, unseal_text
from helmdash.records.models import Payload

_SEALED = "sealed"
OTHER_KEY = "its texts waited in the spool, sealed under another secret key"


def as_kept(capture: Capture, project: ProjectInfo) -> Capture:
    """The capture without the texts that the project does not keep; its figures stay.

    Gives the capture itself where the project keeps all of it.
    """
    if project.payload == Payload.OFF.value:
        return withheld(capture)
    if project.payload == Payload.REDACTED.value:
        return _masked(capture, masker(project))
    return capture


class Spooled(NamedTuple):
    """A capture as it can be stored, and its line: no file holds what the project does not keep.

    `whole`: all of it as JSON, for who stores it; None: to be written when it is asked for.
    """

    capture: Capture
    line: bytes
    whole: bytes | None


def spooled(capture: Capture, project: ProjectInfo) -> Spooled:
    """The capture as it waits.

    It keeps its texts for as long as it is in memory: verdicts are by them. Where texts are kept
    masked they wait sealed, for masking takes up to some milliseconds, and whoever writes to the
    spool is the event loop.
    """
    if project.payload == Payload.OFF.value:
        said = without_words(capture)
        figures = dump_figures(said)
        if figures is not None:
            whole = _with_content(figures, capture) if said is capture else None
            return Spooled(capture, figures, whole)
        return Spooled(dump_capture(capture)[0], dump_capture(withheld(capture))[1], None)
    mended, whole = dump_capture(capture)
    if project.payload != Payload.REDACTED.value:
        return Spooled(mended, whole, whole)
    figures = dump_capture(withheld(mended))[1]
    sealed = b'%s,"%s":"%s"}' % (figures[:-1], _SEALED.encode(), seal_text(whole))
    return Spooled(mended, sealed, whole)


def _with_content(figures: bytes, capture: Capture) -> bytes | None:
    """The whole line of a capture of which the figures are written, as `dump_capture` would have
    it but for the order; None where that has more to do."""
    content = capture.content
    if capture.messages is not None or (content is not None and capture.raw_content_len is None):
        return None
    if content is None:
        return figures
    told = text_line(content)
    return None if told is None else b'%b,"content":%b}' % (figures[:-1], told)


def spooled_figures(capture: Capture, project: ProjectInfo) -> bytes:
    """The line of a capture without what was said, for a spool that is running full."""
    is_full = project.payload == Payload.FULL.value
    return dump_capture(without_texts(capture) if is_full else withheld(capture))[1]


def opened(told: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a line of the spool tells of a capture, its seal broken.

    Its figures alone, and a remark, where it was sealed under another signing key.
    """
    if _SEALED not in told:
        return told
    whole = unseal_text(str(told[_SEALED]))
    if whole is not None:
        return cast("Mapping[str, Any]", orjson.loads(whole))
    return {**told, "metadata": {**(told.get("metadata") or {}), NOT_STORED: OTHER_KEY}}


def withheld(capture: Capture) -> Capture:
    """The capture without what was said, by whomever; the lengths stay."""
    kept = without_words(capture)
    if kept.messages is None and kept.content is None:
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
