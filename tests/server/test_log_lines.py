"""What is in the log while the database is away: why, and since when; not each request."""

from __future__ import annotations

import logging

import pytest


def test_an_outage_is_not_told_by_each_request_and_each_try(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pool, requests = logging.getLogger("psycopg.pool"), logging.getLogger("django.request")
    busy, broken = {"status_code": 503}, {"status_code": 500}

    for number in range(3):
        pool.warning("error connecting in %r: %s", "pool-1", f"no such host, {number}")
        pool.warning("reconnection attempt in pool %r failed after %s sec", "pool-1", number)
        requests.error("Service Unavailable: %s", f"/{number}", extra=busy)
    requests.error("Internal Server Error: %s", "/broken", extra=broken)
    # With a traceback, as of a statement that took too long, it says more.
    requests.error("Service Unavailable: %s", "/slow", exc_info=OSError("slow"), extra=busy)

    assert [record.getMessage() for record in caplog.records] == [
        "error connecting in 'pool-1': no such host, 0",
        "reconnection attempt in pool 'pool-1' failed after 0 sec",
        "Internal Server Error: /broken",
        "Service Unavailable: /slow",
    ]
