"""Messages are stored once by keys that lie side by side, whoever recorded them before."""

from __future__ import annotations

import pytest

from helmdash.core.calls.capture import Capture
from helmdash.core.text.messages import canonical_bytes, canonical_hashes
from helmdash.operations.recording import message_keys
from helmdash.operations.recording.calls import record_calls
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.calls import calls
from helmdash.records.models import CallPayload, StoredMessage
from tests.factories import NOW, make_capture
from tests.recording.support import make_ruled_project, record

TURNS = tuple({"role": "user", "content": f"turn {number}"} for number in range(6))
HASHES = canonical_hashes([canonical_bytes(turn) for turn in TURNS])


@pytest.fixture
def full(db: None) -> ProjectInfo:
    return make_ruled_project(payload="full")


def chat(*lengths: int, name: str = "talk") -> list[Capture]:
    return [
        make_capture(id=f"{name}-{length}", conversation=name, messages=TURNS[:length])
        for length in lengths
    ]


def stored() -> set[str]:
    return set(StoredMessage.objects.values_list("hash", flat=True))


def test_what_one_transaction_stores_lies_side_by_side(full: ProjectInfo) -> None:
    record(full, *chat(4))

    first, *others = sorted(stored())
    assert first == HASHES[0]
    moment = f"b3:{int(NOW.timestamp() * 1000):011x}:"
    assert others == sorted(moment + each[3:27] for each in HASHES[1:4])


@pytest.mark.parametrize("is_new_process", [False, True])
def test_a_history_is_stored_once_whoever_recorded_it(
    full: ProjectInfo, is_new_process: bool
) -> None:
    record(full, *chat(2))
    for length in (4, 6):
        if is_new_process:
            message_keys.forget()
        record(full, *chat(length))

    assert len(stored()) == 6
    found = calls.find(project_id=full.id, call_id="talk-6")
    assert found is not None
    assert found.messages == TURNS


def test_what_another_process_recorded_meanwhile_is_not_stored_again(full: ProjectInfo) -> None:
    record(full, *chat(2))
    mine = message_keys._memory.keys.copy(), message_keys._memory.talks.copy()
    record(full, *chat(4))
    message_keys.forget()
    message_keys._memory.take_in(*mine)

    record(full, *chat(6))

    assert len(stored()) == 6


def test_messages_of_before_keep_their_keys(full: ProjectInfo) -> None:
    """Code of before stored each under its hash."""
    record(full, *chat(3))
    for key, told in zip(CallPayload.objects.get().message_hashes or (), HASHES, strict=False):
        StoredMessage.objects.filter(hash=key).update(hash=told)
    CallPayload.objects.update(message_hashes=HASHES[:3])
    message_keys.forget()

    record(full, *chat(5))

    assert set(HASHES[:3]) <= stored()
    assert len(stored()) == 5


def test_what_was_erased_meanwhile_is_stored_anew(full: ProjectInfo) -> None:
    record(full, *chat(3))
    StoredMessage.objects.all().delete()

    record(full, *chat(4))

    found = calls.find(project_id=full.id, call_id="talk-4")
    assert found is not None
    assert found.messages == TURNS[:4]


def test_what_is_remembered_is_bounded(full: ProjectInfo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_keys, "_MOST_KNOWN", 4)
    monkeypatch.setattr(message_keys, "_MOST_TALKS", 2)
    for number in range(12):
        record(full, *chat(2, 3, name=f"talk-{number}"))

    memory = message_keys._memory
    assert len(memory.keys) + len(memory.older_keys) <= 12
    assert len(memory.talks) + len(memory.older_talks) <= 6


def test_a_call_that_was_not_committed_is_not_remembered(full: ProjectInfo) -> None:
    def refuse(answers: object) -> None:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        record_calls(project=full, captures=chat(3), caller="owner", now=NOW, also=refuse)
    assert not stored()
    assert not message_keys._memory.keys
