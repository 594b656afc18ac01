"""Sizes: bytes of compact JSON, and tokens estimated from bytes.

The estimate exists for fitting a prompt before it is sent (helmdeck ADR 050's four bytes a token,
the double rounding of "Context Manager"). It must never stand in for a count a provider did not
report.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

# What vendors charge for a picture of about a megapixel: OpenAI 765, Gemini 1,032 (four tiles),
# Anthropic 1,334 tokens. The largest, since an estimate guards a ceiling.
TOKENS_PER_IMAGE = 1_334

_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def compact_json(value: object) -> str:
    """Give the JSON text that is sent and measured: no spaces, Unicode unescaped, given key order.

    Raises TypeError or ValueError for what JSON cannot hold (the doors refuse such input).
    """
    return _COMPACT.encode(value)


def utf8_bytes(text: str) -> int:
    """Count the UTF-8 bytes of a text; a lone surrogate (JSON may carry one) counts three."""
    if text.isascii():
        return len(text)
    return len(text.encode("utf-8", "surrogatepass"))


def json_bytes(value: object) -> int:
    """UTF-8 bytes of a value as it is sent. Raises what `compact_json` raises."""
    return utf8_bytes(compact_json(value))


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimator:
    """Estimate tokens from UTF-8 bytes: ceil(ceil(bytes / chars_per_token) x safety_multiplier).

    The arithmetic is exact: 1.2 means six fifths, so 75,000 x 1.2 is 90,000 and never 90,001.
    Raises ValueError, naming the member, when a factor is not a positive finite number.

    >>> Estimator().tokens("x" * 20)
    6
    """

    chars_per_token: float = 4.0
    safety_multiplier: float = 1.2

    def __post_init__(self) -> None:
        for name in ("chars_per_token", "safety_multiplier"):
            factor = getattr(self, name)
            if not (math.isfinite(factor) and factor > 0):
                raise ValueError(f"{name} must be a number above 0, not {factor}")

    def tokens_of_bytes(self, n: int) -> int:
        """Both roundings go upwards, so that one byte is a token at least; 0 for 0."""
        per, of_per = _ratio(self.chars_per_token)
        times, of_times = _ratio(self.safety_multiplier)
        base = -(-n * of_per // per)
        return -(-base * times // of_times)

    def tokens_of_request(self, size: int, *, images: int) -> int:
        """Of a whole request: size: its UTF-8 bytes without those of images, which cost by the
        piece."""
        return self.tokens_of_bytes(size) + images * TOKENS_PER_IMAGE

    def tokens(self, text: str) -> int:
        """As `tokens_of_bytes`, for the UTF-8 bytes of a text."""
        return self.tokens_of_bytes(utf8_bytes(text))

    def bytes_within(self, tokens: int) -> int:
        """Give the largest n with `tokens_of_bytes(n) <= tokens`; 0 when there is no room."""
        per, of_per = _ratio(self.chars_per_token)
        times, of_times = _ratio(self.safety_multiplier)
        base = max(tokens, 0) * of_times // times
        return base * per // of_per


@lru_cache(maxsize=256)
def _ratio(factor: float) -> tuple[int, int]:
    """Read a factor as the decimal it was written as: the float 1.2 is a hair below 6/5."""
    exact = Fraction(repr(float(factor)))
    return exact.numerator, exact.denominator
