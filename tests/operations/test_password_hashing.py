"""Passwords are hashed one at a time, and only so many wait."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher

from helmdash.operations.access import password_hashing
from helmdash.operations.access.password_hashing import (
    MOST_WAITING,
    QueuedPBKDF2Hasher,
    TooManyHashes,
)


def test_a_password_is_hashed_as_django_does_and_by_one_thread_at_a_time() -> None:
    hasher = QueuedPBKDF2Hasher()
    plain = PBKDF2PasswordHasher()

    with ThreadPoolExecutor(MOST_WAITING) as threads:
        made = list(threads.map(lambda n: hasher.encode(f"p{n}", "salt", 1000), range(40)))

    assert made == [plain.encode(f"p{n}", "salt", 1000) for n in range(40)]
    assert hasher.verify("p1", made[1])
    assert len([t for t in threading.enumerate() if t.name.startswith("passwords")]) == 1


def test_passwords_that_wait_for_too_many_others_are_told_to_come_again() -> None:
    for _ in range(MOST_WAITING):
        password_hashing._places.acquire()
    try:
        with pytest.raises(TooManyHashes):
            QueuedPBKDF2Hasher().encode("p", "salt", 1)
    finally:
        for _ in range(MOST_WAITING):
            password_hashing._places.release()
