"""What is kept of a provider's words about a failed call where a project keeps no texts.

Providers quote the prompt in their errors ("Invalid value: 'my diagnosis is …'"). Our own
sentences, statuses and single words such as codes quote nobody and stay. Of a provider's sentence
stay the runs of words that everybody's errors about sizes are made of, where a number stands among
them: "maximum context length is 8192 tokens" says what a window is, and nothing of a prompt.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from helmdash.core.calls.capture import Capture
from helmdash.core.calls.error_words import is_known_code
from helmdash.core.calls.finish import is_known_reason

NOT_KEPT = "The provider's own words are not kept: this project keeps no texts."
WITHHELD = "withheld"
_STATUS = re.compile(r"\d{3}")
# What codes, types and finish reasons look like that nobody knows: several words as one, as
# `image_parse_failed` or `ModelNotReady`. One word alone may be any word of a prompt.
_CODE = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[_-][A-Za-z0-9]+)+|[A-Z]?[a-z0-9]+(?:[A-Z][a-z0-9]+)+")
_MOST_CODE_CHARS = 64
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
# A part of a code that is also in the prompt says something of it, unless it is as short as "is".
_LEAST_PART_CHARS = 3
# In attempts: what became of one, in words of ours (upstream.failures.FailureKind). A redirect
# tells an address of the provider's making.
_OWN_FAILURES = frozenset(
    {
        *("timeout_connect", "timeout_read", "timeout_write", "timeout_pool", "unreachable", "dns"),
        *("tls", "refused_by_guard", "closed_early", "too_large", "misconfigured"),
    }
)
_PIECE = re.compile(r"[A-Za-z_']+|\d[\d,_]*|[^\sA-Za-z_\d]")
# Between the words of a run; anything else ends it.
_NEUTRAL = frozenset(".,:;()=<>+-`\"'")
_VOCABULARY = frozenset(
    """
    a about above allowed an and are at available be been by can completion configured context
    count currently exceed exceeded exceeds for from had has have however in input is it its large
    larger least length limit limited long longer max max_tokens maximum maximum_context_length
    maxlength message messages minus minimum minute model model's must n_ctx n_prompt_tokens
    new_tokens num_ctx of only or output per please plus prompt range reduce request requested
    requests requires resulted s sequence should size smaller supports than that the there this to
    token tokens too total up used using was were which window with you your
    """.split()
)
# A run is about sizes.
_ABOUT = frozenset(
    "token tokens n_ctx num_ctx context length limit maximum max window n_prompt_tokens".split()
)
_LEAST_WORDS = 2
_MOST_DIGITS = 9
_MOST_CHARS = 300
# Of a report's error so much is compared, with texts of so many characters: some milliseconds.
_MOST_COMPARED = 4_000
_LONGEST_COMPARED = 256 * 1024
_BLOCK = 6


def without_words(capture: Capture) -> Capture:
    """The capture with nothing left of what a provider said of a failure, but its figures.

    A report that somebody wrote tells what its author chose to tell: its words stay, unless they
    quote the messages that came with it and are not kept.
    """
    message = capture.error_message
    if not (message or capture.error_code or capture.attempts) and _is_plain(capture.finish_reason):
        return capture  # as most calls are: nothing was said
    if capture.error_is_own is None and not _quotes(capture):
        return capture
    code, finish, texts = capture.error_code, capture.finish_reason, [*_texts(capture.messages)]
    return replace(
        capture,
        error_message=message if capture.error_is_own else kept_words(message),
        error_code=code if capture.error_is_own or not code else kept_code(code, texts),
        finish_reason=finish if finish is None or _is_plain(finish) else kept_code(finish, texts),
        attempts=tuple(attempt_without_words(attempt) for attempt in capture.attempts),
    )


def _is_plain(finish_reason: str | None) -> bool:
    return not finish_reason or is_known_reason(finish_reason)


def kept_code(code: str, texts: Iterable[str]) -> str:
    """What may be kept of a provider's code: all of it, or WITHHELD.

    texts: of the prompt, as far as they are known. A code that is known stays whatever they say;
    another one stays if it is made of several words, and none of them stands in the prompt.
    """
    if _STATUS.fullmatch(code) or is_known_code(code):
        return code
    if len(code) > _MOST_CODE_CHARS or not _CODE.fullmatch(code):
        return WITHHELD
    parts = [part.casefold() for part in _PARTS.findall(code) if len(part) >= _LEAST_PART_CHARS]
    said = " ".join(texts).casefold()
    return WITHHELD if any(part in said for part in parts) else code


def kept_words(message: str | None) -> str | None:
    """What may be kept of a provider's message; None where there was none."""
    if not message or not message.strip():
        return None
    figures = "; ".join(_runs(message[: 10 * _MOST_CHARS]))[:_MOST_CHARS]
    return f"{NOT_KEPT} Its figures: {figures}." if figures else NOT_KEPT


def attempt_without_words(attempt: Mapping[str, object]) -> Mapping[str, object]:
    """One try of a call, with what may be kept of the provider's message; gives it as it was where
    that is all of it."""
    error, message = attempt.get("error"), attempt.get("message")
    if message is None or error in _OWN_FAILURES:
        return attempt
    kept = kept_words(message) if isinstance(message, str) else None
    told = {name: value for name, value in attempt.items() if name != "message"}
    return {**told, "message": kept} if kept else told


def _quotes(capture: Capture) -> bool:
    """Whether an error's words share eleven letters in a row with the call's own texts."""
    words: list[object] = [capture.error_message, capture.error_code]
    words += (attempt.get("message") for attempt in capture.attempts)
    said = [_folded(text)[:_MOST_COMPARED] for text in words if isinstance(text, str)]
    if not any(said):
        return False
    texts = _folded(" ".join((*_texts(capture.messages), capture.content or "")))
    if len(texts) > _LONGEST_COMPARED:
        return True
    # Every run of eleven holds a whole block of six.
    blocks = {text[at : at + _BLOCK] for text in said for at in range(0, len(text), _BLOCK)}
    return any(len(block) == _BLOCK and block in texts for block in blocks)


def _folded(text: str) -> str:
    return "".join(text.split()).casefold()


def _texts(value: object) -> Iterator[str]:
    """All texts inside of messages."""
    pending = [value]
    while pending:
        match pending.pop():
            case str() as text:
                yield text
            case Mapping() as members:
                pending += members.values()
            case list() | tuple() as items:
                pending += items


def _runs(message: str) -> Iterator[str]:
    """The runs of known words and numbers that tell a size."""
    run: list[re.Match[str]] = []
    for found in _PIECE.finditer(message):
        if found[0] in _NEUTRAL:
            continue
        if _is_known(found[0]):
            run.append(found)
            continue
        yield from _told(message, run)
        run = []
    yield from _told(message, run)


def _told(message: str, run: list[re.Match[str]]) -> Iterator[str]:
    """The run as it stands in the message, if it tells a size."""
    if _tells_a_size([found[0] for found in run]):
        yield " ".join(message[run[0].start() : run[-1].end()].split())


def _is_known(piece: str) -> bool:
    if piece[0].isdecimal():
        return sum(map(str.isdecimal, piece)) <= _MOST_DIGITS
    return piece.lower() in _VOCABULARY


def _tells_a_size(run: list[str]) -> bool:
    words = [piece.lower() for piece in run if not piece[0].isdecimal()]
    return (
        len(words) < len(run)
        and len(words) >= _LEAST_WORDS
        and any(word in _ABOUT for word in words)
    )
