"""The three signals, their addresses, and the two encodings, with what is answered in each."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from helmdash.doors.bodies.jsontext import dump_json
from helmdash.doors.faults import Fault


class Signal(StrEnum):
    """What an export is of."""

    TRACES = "traces"
    LOGS = "logs"
    METRICS = "metrics"


SIGNALS: Mapping[str, Signal] = {f"/v1/{signal.value}": signal for signal in Signal}
# How a partial success calls what was rejected.
_REJECTED = {
    Signal.TRACES: "rejectedSpans",
    Signal.LOGS: "rejectedLogRecords",
    Signal.METRICS: "rejectedDataPoints",
}


class Encoding(StrEnum):
    """How a body is written; the answer is written alike."""

    PROTOBUF = "application/x-protobuf"
    JSON = "application/json"


class WrongEncoding(Fault):
    """The body is neither protobuf nor JSON, or compressed in a way that is not read."""

    status = 415
    code = "unsupported_media_type"


class BadExport(Fault):
    """The body is not an export of its signal; sent again it would not be one either."""

    status = 400
    code = "malformed"


class TooManyRecords(Fault):
    """More than one export may hold."""

    status = 413
    code = "body_too_large"


class WrongMethod(Fault):
    """Not a POST."""

    status = 405
    code = "method_not_allowed"

    def __init__(self) -> None:
        super().__init__("Use POST: exports are only taken here.")


class MissingScope(Fault):
    """The key may not record calls."""

    status = 403
    code = "forbidden"


class RecorderBusy(Fault):
    """What was sent cannot be stored just now; the same export may be sent again."""

    status = 503
    code = "unavailable"
    # Longer than the recorder takes to write a full queue; exporters wait so long by themselves.
    retry_after_s = 5


# google.rpc.Code of each status (google/rpc/code.proto); of any other "unknown", 2.
_CODES = {
    400: 3,
    401: 16,
    403: 7,
    404: 5,
    405: 12,
    408: 4,
    413: 8,
    415: 3,
    429: 8,
    500: 13,
    503: 14,
}


def encoding_of(headers: Mapping[bytes, bytes]) -> Encoding | None:
    """By the Content-Type alone; None for any other."""
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    try:
        return Encoding(kind.decode("latin-1"))
    except ValueError:
        return None


def success(signal: Signal, encoding: Encoding, *, rejected: int, why: str) -> bytes:
    """The response of an export: empty where all was taken, else a partial success."""
    if encoding is Encoding.JSON:
        partial: dict[str, object] = {}
        if rejected:
            # 64-bit integers are texts in protobuf's JSON.
            partial = {_REJECTED[signal]: str(rejected), "errorMessage": why}
        return dump_json({"partialSuccess": partial} if partial else {})
    if not rejected:
        return b""
    text = why.encode()
    # Its members: 1 is the number, 2 the message; of the response it is member 1.
    partial_success = b"\x08" + _varint(rejected) + b"\x12" + _varint(len(text)) + text
    return b"\x0a" + _varint(len(partial_success)) + partial_success


def status_body(status: int, message: str, encoding: Encoding) -> bytes:
    """A google.rpc.Status: member 1 is the code, 2 the message."""
    code = _CODES.get(status, 2)
    if encoding is Encoding.JSON:
        return dump_json({"code": code, "message": message})
    text = message.encode()
    return b"\x08" + _varint(code) + b"\x12" + _varint(len(text)) + text


def _varint(number: int) -> bytes:
    """A number as protobuf writes it: seven bits in a byte, the lowest first."""
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)
