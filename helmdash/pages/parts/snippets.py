"""Text to paste into a shell or an editor: the first call, and a recorded call told again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping

from helmdash.queries.calls.calls import CallDetail, CallView

KEY_VARIABLE = "HELMDASH_API_KEY"
_FIRST_CALL = """\
curl -sS {url} \\
  -H {bearer} \\
  -H "Content-Type: application/json" \\
  -d '{{"conversation": "hello", "model": "openai/gpt-4o",
       "usage": {{"prompt_tokens": 96000,
                 "completion_tokens": 350}},
       "finish_reason": "stop"}}'"""
_FIRST_CALL_PYTHON = """\
import json
import os
import urllib.request

key = {key}
call = {{
    "conversation": "hello",
    "model": "openai/gpt-4o",
    "usage": {{
        "prompt_tokens": 96000,
        "completion_tokens": 350,
    }},
    "finish_reason": "stop",
}}
request = urllib.request.Request(
    "{url}",
    data=json.dumps(call).encode(),
    headers={{"Authorization": f"Bearer {{key}}",
             "Content-Type": "application/json"}},
)
print(urllib.request.urlopen(request).read().decode())
"""


def first_call_curl(base: str, key: str | None) -> str:
    """The first call for a shell; key None: it comes from the environment."""
    return _FIRST_CALL.format(url=shlex.quote(_url(base)), bearer=_bearer(key))


def first_call_python(base: str, key: str | None) -> str:
    """The first call for Python, with nothing but its standard library; key None as for the
    shell."""
    shown = json.dumps(key) if key else f'os.environ["{KEY_VARIABLE}"]'
    text = _FIRST_CALL_PYTHON.format(url=_url(base), key=shown)
    return text.replace("import os\n", "") if key else text


def post_call(base: str, body: Mapping[str, object]) -> str:
    """A POST /calls as a curl command, with the key from the environment."""
    return post(f"{base}/api/v1/calls", body)


def post(url: str, body: Mapping[str, object]) -> str:
    """A POST of a JSON body as a curl command, with the key from the environment."""
    return (
        f"curl -sS {shlex.quote(url)} \\\n"
        f"  -H {_bearer(None)} \\\n"
        '  -H "Content-Type: application/json" \\\n'
        f"  -d {shlex.quote(json.dumps(body, ensure_ascii=False))}"
    )


def recorded_again(detail: CallDetail) -> dict[str, object]:
    """The body that records the same facts as a new call: without its id, which is taken."""
    call = detail.call
    body: dict[str, object | None] = {
        "conversation": call.conversation,
        "model": call.model,
        "provider": call.provider,
        "pack": call.pack,
        "purpose": call.purpose,
        "correlation_id": call.correlation_id,
        "attempt": call.attempt if call.attempt != 1 else None,
        "caller": call.caller,
        "upstream_model": call.upstream_model,
        "prompt_variant": call.prompt_variant,
        "response_format": call.response_format,
        "finish_reason": call.finish_reason_raw,
        "raw_content_len": call.raw_content_len,
        "latency_ms": call.latency_ms,
        "ttft_ms": call.ttft_ms,
        "status": call.status,
        "http_status": call.http_status,
        "error_code": call.error_code,
        "error_message": call.error_message,
        "trim": _trim(detail),
        "sent": _sent(call),
        "messages": list(detail.messages) if detail.messages is not None else None,
        "content": detail.content,
        "started_at": call.started_at.isoformat(),
        "metadata": detail.metadata,
    }
    told = {name: value for name, value in body.items() if value is not None}
    return {"model": told.pop("model"), "usage": detail.usage_raw, **told}


def _trim(detail: CallDetail) -> dict[str, object] | None:
    trim = detail.call.trim
    if trim is None:
        return None
    return {
        "before_bytes": trim.before_bytes,
        "after_bytes": trim.after_bytes,
        "dropped": list(detail.trim_dropped),
    }


def _sent(call: CallView) -> dict[str, int] | None:
    sent = call.sent
    told = {
        "bytes": sent.bytes,
        "messages": sent.messages,
        "tools_bytes": sent.tools_bytes,
        "images": sent.images,
    }
    return {name: value for name, value in told.items() if value is not None} or None


def _url(base: str) -> str:
    return f"{base}/api/v1/calls"


def _bearer(key: str | None) -> str:
    # In double quotes, the shell puts the variable in.
    return f'"Authorization: Bearer {key or "$" + KEY_VARIABLE}"'
