"""The words of a body that is no JSON."""

from __future__ import annotations

import pytest

from helmdash.providers.shared.pages import LONGEST_TEXT_CHARS, visible_text


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", ""),
        (b" Too  busy.\n", "Too busy."),
        (b"\xef\xbb\xbfBusy", "Busy"),
        # the title says it
        (b"<html><head><title>502 Bad &amp; sad</title></head><body>nginx</body>", "502 Bad & sad"),
        # no title, and one that says nothing
        (b"<head><style>p{}</style></head><h1>502</h1><p>nginx", "502 nginx"),
        (b"<title> </title><script>x()</script><h1>502</h1>", "502"),
        # cut off inside what is hidden
        (b"<h1>502</h1><style>p{" + b"x" * LONGEST_TEXT_CHARS, "502"),
        (b"<html></html>", ""),
        (b"\xff", "\ufffd"),
    ],
)
def test_of_a_page_only_what_a_reader_sees_is_told(body: bytes, text: str) -> None:
    assert visible_text(body) == text


def test_a_hostile_page_costs_little() -> None:
    assert len(visible_text(b"a" * 10**6)) == LONGEST_TEXT_CHARS
    assert visible_text(b"<head" * 10**5) == ""
