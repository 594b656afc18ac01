"""Errors in vendors' words: what an error code or message says about why a call failed.

Tables of data, one per kind of failure. Codes are compared by their letters and digits only, so
`RateLimitError`, `rate_limit_error` and `rate-limit-error` are one word. Messages are matched by
the wording each vendor's API uses (examples beside the patterns), in any letter case.
"""

from __future__ import annotations

import re
from enum import Enum, auto


class ErrorKind(Enum):
    """What an error is about, as far as its own words say."""

    STOPPED = auto()  # our own process ended during the call
    DISCONNECTED = auto()
    BUDGET = auto()  # a guard found the request larger than its model's budget
    CONTEXT = auto()
    QUOTA = auto()
    RATE = auto()
    SAFETY = auto()
    AUTH = auto()
    TIMEOUT = auto()
    REDIRECTED = auto()
    NETWORK = auto()
    OVERLOADED = auto()
    UPSTREAM = auto()
    DEADLOCK = auto()
    MODEL = auto()
    REQUEST = auto()
    CUT = auto()  # the provider broke off in the middle of its reply
    GARBLED = auto()  # a reply whose bytes are not of the provider's own format
    READER = auto()  # the caller could not read the reply
    CALLER = auto()  # something else went wrong at the caller's


# The order of kinds is the order of asking: "request too large … tokens per minute" is a rate.
_CODES: dict[ErrorKind, str] = {
    ErrorKind.STOPPED: "gateway_stopped",
    ErrorKind.DISCONNECTED: """
        client_disconnected client_disconnect client_closed client_closed_request request_cancelled
        request_canceled cancelled canceled cancelled_error aborted abort_error""",
    ErrorKind.BUDGET: "over_budget",
    ErrorKind.CONTEXT: """
        context_length_exceeded context_window_exceeded context_window_exceeded_error
        model_context_window_exceeded exceed_context_size_error context_overflow prompt_too_long
        input_too_long model_max_prompt_tokens_exceeded tokens_limit_reached request_too_large
        string_above_max_length 413""",
    ErrorKind.QUOTA: """
        insufficient_quota quota_exceeded billing_hard_limit_reached insufficient_credits
        credits_exhausted payment_required""",
    ErrorKind.RATE: """
        rate_limit rate_limited rate_limit_exceeded rate_limit_error too_many_requests
        too_many_requests_error throttled throttling throttling_exception resource_exhausted 429""",
    ErrorKind.SAFETY: """
        content_filter content_filter_error content_filtered content_policy_violation
        responsible_ai_policy_violation data_inspection_failed moderation moderation_blocked
        prohibited_content safety safety_filtered""",
    ErrorKind.AUTH: """
        invalid_api_key incorrect_api_key api_key_invalid invalid_authentication authentication
        authentication_error unauthenticated unauthorized unauthorized_error permission_denied
        permission_denied_error permission_error forbidden access_denied access_denied_exception
        auth_failed credential_invalid invalid_credentials unrecognized_client_exception 401 403""",
    # And every other code that says "timeout".
    ErrorKind.TIMEOUT: """
        timeout timed_out timeout_error request_timeout gateway_timeout read_timeout
        connect_timeout deadline_exceeded 408 504 522 524""",
    ErrorKind.REDIRECTED: "upstream_redirected",
    ErrorKind.NETWORK: """
        network network_error connection connection_error api_connection_error connect_error
        connection_refused connection_reset connection_aborted connection_closed econnrefused
        econnreset econnaborted enotfound eai_again ehostunreach enetunreach epipe dns dns_error
        name_resolution_error ssl_error tls_error certificate_error proxy_error read_error
        write_error remote_protocol_error remote_disconnected socket_error fetch_failed
        unknown_host unreachable""",
    ErrorKind.OVERLOADED: """
        overloaded overloaded_error engine_overloaded model_overloaded service_unavailable
        service_unavailable_error unavailable at_capacity 503 529""",
    ErrorKind.DEADLOCK: "json_validate_failed failed_generation",  # Groq's JSON mode giving up
    ErrorKind.UPSTREAM: """
        server_error internal internal_error internal_server_error api_error bad_gateway
        provider_error upstream_error model_error http_5xx 500 502""",
    ErrorKind.MODEL: """
        model_not_found unknown_model unknown_provider invalid_model model_not_available
        deployment_not_found not_found not_found_error 404""",
    ErrorKind.REQUEST: """
        bad_request bad_request_error invalid_request invalid_request_error invalid_argument
        unsupported_parameter unsupported_value validation_exception http_4xx 400 422""",
    # What a gateway says of a stream without its end, and of bytes it cannot read.
    ErrorKind.CUT: "closed_early incomplete_read incomplete_stream stream_closed premature_close",
    ErrorKind.GARBLED: "undecodable_reply undecodable_stream",
    ErrorKind.READER: """
        decode decode_error invalid_json json_decode_error json_parse_error parse_error undecodable
        invalid_output schema_mismatch""",
    ErrorKind.CALLER: "handler_failed artifact_failed",
}

_WORDINGS: dict[ErrorKind, str] = {
    # Groq answers 413 and OpenAI 429 with "Request too large for model … tokens per minute".
    ErrorKind.RATE: r"(?:tokens|requests) per (?:min|day)|rate.?limit|too many requests",
    ErrorKind.CONTEXT: "|".join(
        (
            # OpenAI, DeepSeek, vLLM, Together, OpenRouter, Fireworks: "maximum context length is"
            r"max(?:imum)? (?:context|prompt|sequence) (?:length|size|window)",
            r"maximum model length",
            # OpenAI Responses, MiniMax, Anthropic ("input length and max_tokens exceed"), SGLang
            r"exceed\w* (?:[^\s.]+ ){0,5}context",
            r"context (?:length|window|size|limit) (?:is |was |has been )?exceed",
            r"longer than the (?:model|context)|input length [^.]{0,20}exceeds the max",  # SGLang
            r"too long to fit into the model|model'?s context length is only",  # vLLM
            r"exceed max message tokens",  # Volcengine
            r"(?:greater|larger) than the (?:max )?context",  # LM Studio, llama.cpp
            r"greater than max_seq_len",  # ExLlamaV2, which TabbyAPI serves
            r"overflows? the context|context (?:the )?overflow",  # LM Studio
            r"(?:prompt|input) (?:is )?too (?:long|large)",  # Anthropic, Ollama, Bedrock
            r"too large for model with \d+ maximum",  # Mistral
            r"input token count[^.]{0,60}exceed",  # Gemini
            r"prompt token count[^.]{0,60}exceed",  # GitHub Copilot
            r"input tokens? exceeds?",  # OpenAI: "Input tokens exceed the configured limit"
            r"input token count is [^.]{0,20} but model only supports",  # Vertex AI
            r"too many input tokens|expected maxlength: \d+",  # Bedrock
            r"input tokens [^.]{0,20}has exceeded max_prompt_tokens",  # SiliconFlow
            r"exceeded model token limit",  # Moonshot
            r"prompt exceeds max length",  # Zhipu
            r"range of input length should be",  # Qwen
            r"reduce the length of (?:the|your) (?:messages?|prompt|input)",  # Groq, Cerebras
            r"too many tokens: ?(?:total|size|the)?",  # Cohere
            r"tokens?`? \+ `?max_new_tokens`? must be <=|must have less than \d+ token",  # TGI
            r"request (?:body )?too large for [\w.-]+ model|max size: \d+ tokens",  # GitHub Models
        )
    ),
    ErrorKind.SAFETY: (
        # Azure; DeepSeek; OpenRouter's 403; Qwen
        r"content management policy|content exists risk|requires moderation|flagged (?:by|as|for)"
        r"|(?:input|prompt|request|message|content)s? (?:was|were|is|are|ha[sv]e? been) flagged"
        r"|blocked by [^.]{0,40}(?:safety|policy|filter)|inappropriate content|usage policy"
    ),
    ErrorKind.AUTH: r"api key not valid|invalid api key|incorrect api key|no auth credentials",
    ErrorKind.TIMEOUT: r"timed? ?out|timeout|deadline exceeded",
    ErrorKind.NETWORK: (
        r"connection (?:error|refused|reset|aborted|closed)|econn(?:refused|reset)|getaddrinfo"
        r"|name or service not known|name resolution|no route to host|network is unreachable"
        r"|fetch failed|server disconnected|peer closed connection"
    ),
    ErrorKind.OVERLOADED: r"overloaded|over capacity|at capacity|temporarily unavailable",
    ErrorKind.DEADLOCK: r"failed to generate json|failed to validate json",
    ErrorKind.MODEL: r"model[^.]{0,80}(?:not found|does not exist)|unknown model|no such model",
}

# A request refused because it asked for JSON in a way that this model does not have.
_JSON_MODE = re.compile(r"response_format|response_mime_type|json[ _](?:mode|schema|object)", re.I)

# What OpenRouter's moderation says, whose code is the number of its status again. (Vendors with a
# word of their own for a bad key mean just that.)
_FORBIDDEN = frozenset({"403", "forbidden"})

# Codes that say no more than that it failed.
_GENERIC = frozenset({ErrorKind.UPSTREAM, ErrorKind.REQUEST})

# Vendors say it at once; the page of HTML that a proxy puts behind it must not cost time.
_READ_CHARS = 4000

_STATUS_IN_CODE = re.compile(r"(?:http|status|error|code)*([1-5]\d\d)")


def kind_of_error(code: str | None, message: str | None) -> ErrorKind | None:
    """Say what an error is about; None where neither code nor message says.

    The code is asked first, but a code that only says "it failed" yields to a message that says
    why: Anthropic's code for a prompt that is too long is `invalid_request_error`. A 403 yields to
    a filter's words.
    """
    word = _word_of_code(code) if code else ""
    by_code = _kind_of_word(word)
    if by_code is not None and by_code not in _GENERIC and word not in _FORBIDDEN:
        return by_code
    by_message = _kind_of_message(message) if message else None
    if word in _FORBIDDEN and by_message is not ErrorKind.SAFETY:
        return by_code
    return by_message or by_code


def is_known_code(code: str) -> bool:
    """Whether a code is one that vendors, or HelmDash itself, are known to use."""
    return _word_of_code(code) in _KIND_OF_CODE


def is_about_json_mode(message: str | None) -> bool:
    """Whether a refusal speaks of the JSON mode that was asked for; not so without a message
    (None)."""
    return bool(message and _JSON_MODE.search(message[:_READ_CHARS]))


def _word_of_code(code: str) -> str:
    """The letters and digits of a code; of one that is a status ("HTTP_403"), the digits alone."""
    letters = _letters(code)
    status = _STATUS_IN_CODE.fullmatch(letters)
    return status[1] if status else letters


def _kind_of_word(word: str) -> ErrorKind | None:
    if "timeout" in word or "timedout" in word:
        return ErrorKind.TIMEOUT
    return _KIND_OF_CODE.get(word)


def _kind_of_message(message: str) -> ErrorKind | None:
    start = message[:_READ_CHARS]
    return next((kind for kind, wording in _WORDING.items() if wording.search(start)), None)


def _letters(code: str) -> str:
    return "".join(char for char in code.lower() if char.isalnum())


_KIND_OF_CODE = {_letters(code): kind for kind, codes in _CODES.items() for code in codes.split()}
_WORDING = {kind: re.compile(wording, re.I) for kind, wording in _WORDINGS.items()}
