"""The window is read from a refusal in each vendor's words, and never another number."""

from __future__ import annotations

import pytest

from helmdash.core.budgets.refused_windows import OWN_WORDS, refused_window
from helmdash.core.calls.error_words import ErrorKind, kind_of_error

# What stands before the bar is the window that the refusal behind it names.
_TEXT = r"""
8192 | This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.
4096 | This model's maximum context length is 4,096 tokens, but you requested 5000
131072 | This endpoint's maximum context length is 131072 tokens. However, you requested about 140000 tokens (139000 of text input, 1000 in the output).
200000 | prompt is too long: 210000 tokens > 200000 maximum
200000 | input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000, decrease input length
4096 | the request exceeds the available context size (4096 tokens), try increasing it
4096 | request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it
- | the request exceeds the available context size. try increasing the context size or enable context shift
4096 | {"error":{"code":400,"message":"the request exceeds","type":"exceed_context_size_error","n_prompt_tokens":5000,"n_ctx":4096}}
4096 | The decoder prompt (length 5000) is longer than the maximum model length of 4096. Make sure
1048576 | The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).
1048576 | input token count is 2000000 but model only supports up to 1048576
32768 | Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length
4096 | Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough
128000 | prompt token count of 150000 exceeds the limit of 128000
8192 | Invalid request: Your request exceeded model token limit: 8192
4096 | Context length 9001 is greater than max_seq_len 4096
200000 | Too many input tokens. Max input tokens: 200000, request input token count: 210000
4096 | `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens and 200
4095 | `inputs` must have less than 4095 tokens. Given: 5000
4096 | The input (5000 tokens) is longer than the model's context length (4096 tokens).
32768 | Requested token count exceeds the model's maximum context length of 32768 tokens. You requested 40000
30720 | Range of input length should be [1, 30720]
8000 | Request body too large for gpt-4o model. Max size: 8000 tokens.
4081 | too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000
131072 | This model's maximum prompt length is 131072 but the request contains 140000 tokens.
- | Your input exceeds the context window of this model. Please adjust your input and try again.
4096 | length of input (5000) exceeds maximum context length 4096 tokens
8192 | max_model_len (8192)
- | maximum context length is 8 tokens
272000 | Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens.
8192 | context length exceeded: 9000 > 8192
8192 | Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192
4096 | Input length (5000 tokens) exceeds the maximum allowed length (4096 tokens). Use a shorter input or enable --allow-auto-truncate.
4096 | The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 9000>= n_ctx: 4096)
128000 | maximum context length of 128000. 5 messages
131072 | you requested 131073 tokens > max context length 131072.
8192 | Requested tokens (9001) exceed context window of 8192
4096 | The prompt (total length 5000) is too long to fit into the model (context length 4096). Make sure
4096 | You passed 4097 input tokens and requested 0 output tokens. However, the model's context length is only 4096 tokens, resulting in a maximum input length of 4096 tokens.
32000 | Total tokens of image and text exceed max message tokens: 32000
- | Requested tokens exceed context window of this model
- | prompt too long; exceeded max context length by 56948 tokens
- | This model's maximum context length is exceeded by 5000 tokens
"""  # noqa: E501
CASES = [
    (message, None if tokens == "-" else int(tokens))
    for tokens, message in (line.split(" | ", 1) for line in _TEXT.strip().splitlines())
]


@pytest.mark.parametrize(("message", "tokens"), CASES)
def test_the_window_is_read_and_no_other_number(message: str, tokens: int | None) -> None:
    assert refused_window(message) == tokens
    assert refused_window(message.upper()) == tokens


@pytest.mark.parametrize(
    "message",
    [None, "", "no numbers", "maximum context length is unknown", "9 > 8", "x" * 100_000,
     "maximum context length is 99999999999999 tokens"],
)  # fmt: skip
def test_what_names_no_window_gives_none(message: str | None) -> None:
    assert refused_window(message) is None


def test_most_of_these_are_known_as_overflows() -> None:
    """Two say it by their code only."""
    others = [text for text, _ in CASES if kind_of_error(None, text) is not ErrorKind.CONTEXT]

    assert len(others) <= 2


@pytest.mark.parametrize("around", ["{}", "prompt is too long: 9 tokens > 8192 maximum (desk: {})"])
@pytest.mark.parametrize(
    "words",
    [
        "This model's maximum context length is 8192 tokens. However, your request is about 9000.",
        "prompt is too long: 9000 tokens > 8192 maximum",
    ],
)
def test_a_refusal_of_ours_names_a_budget_and_no_window(words: str, around: str) -> None:
    """As the client is told, and as the HelmDash before it tells that one's client."""
    own = f"{words} ({OWN_WORDS}openai/gpt-4o, estimated before sending; nothing was sent.)"

    assert refused_window(around.format(words)) == 8192
    assert refused_window(around.format(own)) is None
