"""The window that a refusal names: "maximum context length is 8192 tokens", in each vendor's words.

A refusal names up to three numbers (the prompt, the reply that was asked for, the window), so each
wording is read on its own. What names no window gives None: better none than the wrong one.

Nor is a window named by a refusal of ours, which holds a request against its budget before it is
sent: in the words of the client's own vendor, with the budget in the window's place.
"""

from __future__ import annotations

import re
from typing import Final

# What stands behind each refusal of ours, wherever it is told again: by a client's own records, or
# by a HelmDash that is the upstream of another.
OWN_WORDS: Final = "HelmDash's budget for "

# Smaller windows than this have no use, and larger ones no model: then it was another number.
_LEAST_TOKENS = 128
_MOST_TOKENS = 2**31 - 1
# As much of a message as is read; vendors say it at once.
_READ_CHARS = 4000

_N = r"(\d[\d,_. ]*\d|\d)"
_MOST = r"max(?:imum)?"
_ROOM = r"(?:context|prompt|model|sequence|input) (?:length|len|size|window)"
_WORDINGS = tuple(
    re.compile(wording, re.I | re.S)
    for wording in (
        # OpenAI, DeepSeek, vLLM, Together, OpenRouter, Fireworks, xAI ("prompt length")
        # and not Ollama's "exceeded max context length by 5000 tokens"
        rf"{_MOST} {_ROOM}(?: (?!by\b)[a-z]+)? ?(?:is|of|:|=)? ?(?:only )?[(\[]?{_N}",
        # vLLM: "max_model_len=4096"; llama.cpp's JSON: "n_ctx": 4096
        rf"max_(?:model_len|context_length|seq_len)\"? ?[:=(]* ?{_N}",
        rf"\"?\bn_ctx\"? ?[:=(]+ ?{_N}",
        # Anthropic: "prompt is too long: 210000 tokens > 200000 maximum"
        rf"tokens? ?> ?{_N} (?:tokens? )?maximum",
        # Anthropic: "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000"
        rf"exceeds? (?:the )?context limit: ?[\d,]+ ?\+ ?[\d,]+ ?> ?{_N}",
        # llama.cpp: "request (5000 tokens) exceeds the available context size (4096 tokens)"
        # and others: "context window of 128000 tokens"
        rf"context (?:size|window|length|limit)(?: of)? ?[(:]? ?(?:is )?{_N}(?= ?tok|\)|,)",
        # llama-cpp-python: "Requested tokens (9001) exceed context window of 8192"
        rf"exceeds? context window of {_N}",
        # Volcengine: "Total tokens of image and text exceed max message tokens: 32000"
        rf"max message tokens ?: ?{_N}",
        # Gemini: "exceeds the maximum number of tokens allowed (1048576)"
        rf"maximum number of (?:input )?tokens(?: allowed)? ?[(:]? ?(?:is )?{_N}",
        # Vertex AI: "but model only supports up to 1048576"
        rf"model only supports (?:up to )?{_N}",
        # LM Studio: "the model is loaded with context length of only 4096 tokens"
        rf"context length of (?:only )?{_N}",
        # Mistral: "too large for model with 32768 maximum context length"
        rf"model with {_N} maximum",
        # GitHub Copilot: "prompt token count of 150000 exceeds the limit of 128000"
        # OpenAI: "exceed the configured limit of 272000 tokens"
        rf"exceeds? the (?:model'?s? |configured )?(?:token )?limit(?: of)? ?:? ?{_N}",
        # Moonshot: "exceeded model token limit: 8192"
        rf"model token limit ?:? ?{_N}",
        # Bedrock: "Max input tokens: 200000"
        rf"max(?:imum)? (?:input|prompt) tokens(?: allowed)? ?[:(]? ?(?:is )?{_N}",
        # SiliconFlow: "has exceeded max_prompt_tokens (4096)"
        rf"max_(?:prompt|input)_tokens (?:limit )?(?:of )?[(:]? ?{_N}",
        # TGI: "`inputs` tokens + `max_new_tokens` must be <= 4096", "must have less than 4095"
        rf"tokens?`? ?\+ ?`?max_new_tokens`? must be <= ?{_N}",
        rf"must have less than {_N} tokens?",
        # Cohere: "cannot exceed 4081"; Qwen: "Range of input length should be [1, 30720]"
        rf"tokens? in the prompt cannot exceed {_N}",
        rf"range of input length should be \[\d+, ?{_N}\]",
        # SGLang: "exceeds the maximum allowed length (4096 tokens)"
        rf"maximum allowed length(?: of)? ?[(:]? ?{_N}",
        # GitHub Models: "Max size: 8000 tokens"
        rf"max size ?: ?{_N} tokens",
        # Cerebras: "Current length is 9000 while limit is 8192"; others: "9000 > 8192"
        rf"limit is {_N}",
        rf"\d(?: tokens?)? ?> ?{_N}",
    )
)


def refused_window(message: str | None) -> int | None:
    """The window in tokens that a refusal names; None where it names none.

    >>> refused_window("This model's maximum context length is 8192 tokens. However, you requested")
    8192
    """
    text = (message or "")[:_READ_CHARS]
    if OWN_WORDS in text:
        return None
    for wording in _WORDINGS:
        found = wording.search(text)
        tokens = _tokens(found[1]) if found else None
        if tokens is not None:
            return tokens
    return None


def _tokens(written: str) -> int | None:
    """A number as people write it: 8192, 8,192, 8_192, 8 192. A fraction is none."""
    groups = re.split(r"[,_. ]", written.strip())
    if len(groups) > 1 and any(len(group) != 3 for group in groups[1:]):
        groups = groups[:1]
    tokens = int("".join(groups))
    return tokens if _LEAST_TOKENS <= tokens <= _MOST_TOKENS else None
