"""Suspecting silent cuts while calls are recorded: core.truncation with what the database knows.

What a conversation remembers lies in its own row. What a model's calls have shown is read from
its newest recorded calls, at most once in some seconds in each process, and kept up in memory by
the calls recorded since: recording writes nothing more, and reads next to nothing more.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from helmdash.core.budgets.health import suspected_cut
from helmdash.core.calls.capture import Capture
from helmdash.core.calls.usage import has_compacted
from helmdash.core.truncation.calibration import Band, Sample, learn_band
from helmdash.core.truncation.detector import judge_cut
from helmdash.core.truncation.sentences import evidence
from helmdash.core.truncation.sizes import CutRule, Sizes, is_judgeable
from helmdash.core.truncation.traces import Trace, model_mark, read_trace
from helmdash.operations.recording.conversation_rows import ConversationRow, is_past
from helmdash.operations.recording.judged.judging import Judged
from helmdash.queries.calls.cuts import newest_samples

# So many calls of a model make its band: dozens of conversations, read in about a millisecond.
_SAMPLES = 240
_MAX_AGE_SECONDS = 10.0
# A band hardly moves by one call; learning it anew costs as much as recording two.
# So it is learned again once a third of what it stands on is new.
_LEARNED_AGAIN = 3
_MOST_MODELS = 512
# A batch that names hundreds of models reads the calls of so many; the others have the wide band.
_MOST_READS = 16
# What a content part may be that is text; all else (images, files, audio) has bytes that tell
# nothing of tokens.
_TEXT_PARTS = frozenset(
    {
        "text",
        "input_text",
        "output_text",
        "refusal",
        "reasoning",
        "thinking",
        "redacted_thinking",
        "tool_use",
        "tool_result",
        "tool_call",
        "function_call",
        "function_call_output",
    }
)

_NO_BAND = Band()
_CACHED_NAMES = ("cached_tokens", "cache_read_input_tokens", "prompt_cache_hit_tokens")
_CACHED_IN = frozenset({*_CACHED_NAMES, "prompt_tokens_details"})

_Key = tuple[int, str, str]  # project, model, upstream's own name of it


@dataclass(slots=True)
class _Learned:
    """A model's newest calls in this process, and the band they make."""

    read_at: float
    samples: deque[Sample]
    band: Band
    unlearned: int = 0


@dataclass(slots=True)
class _Known:
    """All models of this process, the least recently used first.

    changes: how often a band has changed; changed: at which of these each did last.
    """

    models: OrderedDict[_Key, _Learned] = field(default_factory=OrderedDict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    changes: int = 0
    changed: dict[_Key, int] = field(default_factory=dict)

    def note_change(self, key: _Key, before: Band) -> None:
        """Under the lock, once the model has another band or none."""
        learned = self.models.get(key)
        if learned is None:
            self.changed.pop(key, None)
        elif learned.band != before:
            self.changes += 1
            self.changed[key] = self.changes


class LearnedBand(NamedTuple):
    """What a model's calls have shown, for another process to go by."""

    project_id: int
    model_key: str
    upstream_model: str
    band: Band


_known = _Known()


class Cutting:
    """The suspicions of one transaction. What it learns counts once `keep` is called."""

    def __init__(self, project_id: int) -> None:
        self._project_id = project_id
        self._fresh: list[tuple[_Key, Sample]] = []
        self._models: dict[_Key, _Learned | None] = {}
        self._traces: dict[int, tuple[ConversationRow, Trace]] = {}
        self._reads = 0
        self._own: set[int] = set()

    def leave_out(self, ids: Iterable[int]) -> None:
        """Calls of this transaction that are stored by now, by number: what they show counts as
        that of the others does, by `keep`."""
        self._own.update(ids)

    def judge(self, item: Judged, row: ConversationRow | None, *, opens_round: bool) -> Judged:
        """The call with its suspicion, before its conversation takes it in; leaves its trace. row
        None: it belongs to no conversation, and is judged by its model's band alone."""
        capture = item.capture
        if item.health.prompt_tokens is None or item.status != "success":
            return item
        if row is not None and is_past(row, item):
            return item
        sizes = _sizes(item)
        model = capture.upstream_model or capture.model
        trace = self._trace(row, model, opens_round=opens_round)
        key = (self._project_id, item.model_key, capture.upstream_model or "")
        judges = is_judgeable(sizes)
        band = self._band(key) if judges else _NO_BAND
        verdict = judge_cut(sizes, trace, band)
        if row is not None:
            self._traces[row.id] = (row, verdict.trace)
        if judges:
            self._remember(key, row, sizes, is_learned=verdict.is_learned)
        if verdict.suspicion is None:
            return item
        suspicion = verdict.suspicion
        if capture.may_be_truncated:
            suspicion = replace(suspicion, rule=CutRule.TRUNCATION_AUTO)
        return replace(item, health=suspected_cut(item.health), cut=evidence(suspicion))

    def write(self) -> None:
        """Give the conversations their traces, before they are written."""
        for row, trace in self._traces.values():
            row.trace = trace.to_json()

    def keep(self) -> None:
        """After the commit: what the calls have shown counts for the next ones."""
        with _known.lock:
            for key, sample in self._fresh:
                if (learned := _known.models.get(key)) is not None:
                    learned.samples.append(sample)
            for key, own in self._models.items():
                # Of writers at the same time the last one's band holds, until it is learned anew.
                if own is not None and (learned := _known.models.get(key)) is not None:
                    before = learned.band
                    learned.band, learned.unlearned = own.band, own.unlearned
                    _known.note_change(key, before)

    def _trace(self, row: ConversationRow | None, model: str, *, opens_round: bool) -> Trace:
        if row is None:
            return read_trace(None, round_number=1, model=model)
        opens = opens_round and row.generation and not row.is_round_empty
        number = row.round_number + (1 if opens else 0)
        known = self._traces.get(row.id)
        if known is None:
            return read_trace(row.trace, round_number=number, model=model)
        trace = known[1]
        if trace.round_number == number and trace.model == model_mark(model):
            return trace
        return read_trace(None, round_number=number, model=model)

    def _remember(
        self, key: _Key, row: ConversationRow | None, sizes: Sizes, *, is_learned: bool
    ) -> None:
        if sizes.bytes is None or sizes.tokens is None:
            return
        sample = Sample(
            conversation=row.id if row is not None else None,
            sent_bytes=sizes.bytes,
            tokens=sizes.tokens,
            is_learned=is_learned,
        )
        self._fresh.append((key, sample))
        if (learned := self._models.get(key)) is None:
            return
        learned.samples.append(sample)
        learned.unlearned += 1
        if learned.unlearned * _LEARNED_AGAIN >= len(learned.samples):
            learned.band = learn_band(learned.samples)
            learned.unlearned = 0

    def _band(self, key: _Key) -> Band:
        if key not in self._models:
            found = self._find(key)
            # A copy: what this transaction adds must not show before its commit.
            self._models[key] = (
                replace(found, samples=found.samples.copy()) if found is not None else None
            )
        learned = self._models[key]
        return learned.band if learned is not None else Band()

    def _find(self, key: _Key) -> _Learned | None:
        # The clock only ages the cache.
        moment = time.monotonic()
        with _known.lock:
            learned = _known.models.get(key)
            if learned is not None:
                _known.models.move_to_end(key)
        if learned is not None and moment - learned.read_at < _MAX_AGE_SECONDS:
            return learned
        if self._reads >= _MOST_READS:
            return learned
        self._reads += 1
        samples = deque(_read(key, self._own), maxlen=_SAMPLES)
        fresh = _Learned(read_at=moment, samples=samples, band=learn_band(samples))
        with _known.lock:
            _put(key, fresh)
        return fresh


def _put(key: _Key, learned: _Learned) -> None:
    """Under the lock."""
    before = _known.models.get(key)
    _known.models[key] = learned
    _known.models.move_to_end(key)
    _known.note_change(key, before.band if before is not None else _NO_BAND)
    while len(_known.models) > _MOST_MODELS:
        gone, _ = _known.models.popitem(last=False)
        _known.changed.pop(gone, None)


def bands_since(changes: int) -> tuple[int, tuple[LearnedBand, ...]]:
    """The bands that have changed since so many changes, and how many there were by now."""
    with _known.lock:
        if _known.changes == changes:
            return changes, ()
        fresh = [key for key, at in _known.changed.items() if at > changes]
        return _known.changes, tuple(
            LearnedBand(*key, band=_known.models[key].band) for key in fresh
        )


def take_over(bands: Iterable[LearnedBand]) -> None:
    """Go by what another process has learned; whoever records here reads the calls themselves."""
    with _known.lock:
        for project_id, model_key, upstream_model, band in bands:
            key = (project_id, model_key, upstream_model)
            samples: deque[Sample] = deque(maxlen=_SAMPLES)
            _put(key, _Learned(read_at=float("-inf"), samples=samples, band=band))


def looks_cut(project_id: int, model: str, upstream_model: str | None, sizes: Sizes) -> bool:
    """Whether a call's sizes alone look as if its prompt was cut, before it is recorded.

    upstream_model None: the same as model. Judged without its conversation, and by what this
    process knows of the model: the database is not asked. The record may judge better. Any thread;
    never raises.
    """
    with _known.lock:
        learned = _known.models.get((project_id, model, upstream_model or ""))
        band = learned.band if learned is not None else _NO_BAND
    fresh = read_trace(None, round_number=1, model=upstream_model or model)
    return judge_cut(sizes, fresh, band).suspicion is not None


def forget() -> None:
    """Forget what was learned, as a new process would. For tests."""
    with _known.lock:
        _known.models.clear()
        _known.changed.clear()


def _read(key: _Key, own: Collection[int]) -> Iterable[Sample]:
    project_id, model_key, upstream_model = key
    found = newest_samples(
        project_id=project_id,
        model_key=model_key,
        upstream_model=upstream_model,
        limit=_SAMPLES,
        without=own,
    )
    return reversed(found)


def _sizes(item: Judged) -> Sizes:
    capture, sent = item.capture, item.capture.sent
    has_media = bool(sent and sent.images) or _has_media(capture)
    is_blind = has_media or capture.sent_is_prompt is False or has_compacted(capture.usage)
    return Sizes(
        bytes=item.sent_bytes,
        tokens=item.usage.prompt_tokens,
        messages=item.sent_messages,
        cached=_told_cached(item),
        reasoning=item.usage.reasoning_tokens,
        window=capture.window or _told_window(capture.metadata),
        is_blind=is_blind,
        is_trimmed=item.is_trimmed,
    )


def _told_cached(item: Judged) -> int | None:
    """Tokens told as cached, where the prompt count cannot include them: it is smaller."""
    usage, prompt = item.capture.usage, item.usage.prompt_tokens
    if usage is None or prompt is None or item.usage.cached_tokens is not None:
        return None
    if _CACHED_IN.isdisjoint(usage):
        return None
    details = usage.get("prompt_tokens_details")
    told = [usage.get(name) for name in _CACHED_NAMES]
    told.append(details.get("cached_tokens") if isinstance(details, Mapping) else None)
    found = [count for count in told if isinstance(count, int) and count > prompt]
    return max(found, default=None)


def _told_window(metadata: Mapping[str, object] | None) -> int | None:
    """num_ctx, where a caller tells it in its metadata."""
    if not metadata:
        return None
    options = metadata.get("options")
    told = metadata.get("num_ctx")
    if told is None and isinstance(options, Mapping):
        told = options.get("num_ctx")
    return told if type(told) is int and told > 0 else None


def _has_media(capture: Capture) -> bool:
    for message in capture.messages or ():
        # Asked of every message of every call: most are a text, and that is all.
        if type(message.get("content")) is str and "images" not in message:
            continue
        if _is_media(message):
            return True
    return False


def _is_media(message: Mapping[str, object]) -> bool:
    if message.get("images"):
        return True
    content = message.get("content", message.get("parts"))
    return isinstance(content, list) and any(map(_is_media_part, content))


def _is_media_part(part: object) -> bool:
    if not isinstance(part, Mapping):
        return False
    kind = part.get("type")
    if kind is None:
        return bool(part.get("inlineData") or part.get("inline_data") or part.get("fileData"))
    if kind not in _TEXT_PARTS:
        return True
    inner = part.get("content")
    return isinstance(inner, list) and any(map(_is_media_part, inner))
