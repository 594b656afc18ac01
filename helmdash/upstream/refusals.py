"""What an upstream says when it refuses: in words for a person, and whether it is about money."""

from __future__ import annotations

import re

from helmdash.core.calls.error_words import ErrorKind, kind_of_error
from helmdash.providers.openai.errors import read_error
from helmdash.upstream.failures import tidy

# An empty account, in vendors' words: OpenAI, Moonshot, Zhipu, DeepSeek, OpenRouter.
_ABOUT_MONEY = re.compile(
    r"insufficient[ _](?:account )?(?:quota|balance|credits?|funds)"
    r"|check your (?:plan and )?billing|billing (?:hard )?limit|credit balance"
    r"|(?:out of|no|not enough) credits",
    re.IGNORECASE,
)
# Gemini uses OpenAI's words about billing for limits per minute, and says when they are over.
_PASSES = re.compile(r"retrydelay|(?:retry|try again) in|per[ _-]?(?:min|second)", re.IGNORECASE)


def words_of(status: int, body: bytes, *, key: str | None) -> str:
    """The message of an error's body: short, one line, without our key (None: none was sent); empty
    for an empty body.

    JSON is told by the message in it, whichever vendor's form it has, and a page by its text.
    """
    return tidy(read_error(status, body).message, key=key) if body.strip() else ""


def is_about_money(status: int, body: bytes) -> bool:
    """Whether a 429 says that the account is empty: that does not pass in a few seconds.

    A code that says so is enough. Words alone are not when a limit that passes stands beside them.
    """
    error = read_error(status, body)
    if any(kind_of_error(code, None) is ErrorKind.QUOTA for code in (error.code, error.type)):
        return True
    text = body.decode("utf-8", "replace")
    return _ABOUT_MONEY.search(error.message) is not None and _PASSES.search(text) is None
