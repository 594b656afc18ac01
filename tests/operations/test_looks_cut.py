"""Whether a reply's sizes alone look as if its prompt was cut, before the call is recorded."""

from __future__ import annotations

import pytest

from helmdash.core.truncation.sizes import Sizes
from helmdash.operations.recording.truncation import looks_cut


@pytest.mark.parametrize(
    ("sizes", "looks"),
    [
        # half of Ollama's window and two, of a prompt three times as long
        (Sizes(bytes=25_000, tokens=2_050, window=4_096), True),
        # the whole window
        (Sizes(bytes=25_000, tokens=4_096, window=4_096), True),
        # ordinary text
        (Sizes(bytes=8_200, tokens=2_050, window=4_096), False),
        # pictures: bytes say nothing
        (Sizes(bytes=25_000, tokens=2_050, window=4_096, is_blind=True), False),
        # nothing reported, nothing to tell
        (Sizes(bytes=25_000, tokens=None), False),
    ],
)
def test_sizes_alone_tell_a_cut(sizes: Sizes, looks: bool) -> None:
    assert looks_cut(1, "ollama/small", None, sizes) is looks
