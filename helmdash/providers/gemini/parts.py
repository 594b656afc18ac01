"""The parts of a Gemini message, both ways; shared by requests, replies and streams.

Names are read as the SDKs write them (`inlineData`) and as REST users may (`inline_data`):
protobuf's JSON form accepts both.

Signatures: Gemini puts a `thoughtSignature` on the part that it thought before, often a function
call, and Gemini 3 refuses a history whose calls come back without theirs
(https://ai.google.dev/gemini-api/docs/thought-signatures). Here a signature is a `Reasoning`
before that part, without text where the part is no thought. It carries a mark, since another
vendor's signature must not be sent to Gemini, nor Gemini's to another vendor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from helmdash.providers.shared.images import guess_media_type
from helmdash.providers.shared.members import without_nones
from helmdash.providers.shared.tool_ids import arguments_object, arguments_text, is_derived
from helmdash.providers.wire import (
    Image,
    Json,
    Object,
    Other,
    Part,
    Reasoning,
    Text,
    ToolCall,
)

# Base64 has no colon, so no vendor's own signature starts like this.
_MARK = "gemini:"
# Where a part has the bytes of a file, or its address.
BLOBS = {"inlineData": "data", "fileData": "fileUri"}
# Members of a part that say something about its content and are none themselves.
_ABOUT = frozenset({"thought", "thoughtSignature", "videoMetadata", "mediaResolution"})

CallId = Callable[[str, str | None], str]


def camel(name: str) -> str:
    """A member's name as the SDKs write it: `max_output_tokens` is `maxOutputTokens`."""
    if "_" not in name:
        return name
    head, *rest = name.split("_")
    return head + "".join(word[:1].upper() + word[1:] for word in rest) if head else name


def camel_members(body: Object) -> dict[str, Json]:
    """An object with its own names (not those further down) in the SDKs' spelling."""
    if "_" not in "".join(body):
        return dict(body)  # nearly always, and once for every chunk of a stream
    found = {camel(name): value for name, value in body.items()}
    return found | {name: body[name] for name in found if name in body}


def marked(signature: Json) -> str | None:
    """A signature from Gemini with our mark, by which `unmarked` knows it again; None for none."""
    return _MARK + signature if isinstance(signature, str) and signature else None


def unmarked(signature: str | None) -> str | None:
    """The signature as Gemini gave it; None for one that is not Gemini's."""
    if signature is None or not signature.startswith(_MARK):
        return None
    return signature.removeprefix(_MARK)


def read_part(raw: Object, call_id: CallId) -> tuple[Part, ...]:
    """Read a part of a message of the model or the user. Never raises.

    An empty text is no part. A function response is left to the reader of requests.
    """
    part = camel_members(raw)
    signature = marked(part.get("thoughtSignature"))
    text = part.get("text")
    if part.get("thought") is True and isinstance(text, str):
        return (Reasoning(text=text, signature=signature),) if text or signature else ()
    seal = (Reasoning(text="", signature=signature),) if signature else ()
    if isinstance(text, str):
        return (*seal, Text(text=text)) if text else seal
    content = _content(part, raw, call_id)
    return (*seal, content) if content is not None else seal


def _content(part: Object, raw: Object, call_id: CallId) -> Part | None:
    call = part.get("functionCall")
    if isinstance(call, dict):
        return _call(call, call_id)
    for kind, place in BLOBS.items():
        blob = part.get(kind)
        if isinstance(blob, dict):
            return _blob(camel_members(blob), kind, place, raw)
    kinds = [name for name in part if name not in _ABOUT]
    return Other(kind=kinds[0], raw=raw) if kinds else None


def _call(call: Object, call_id: CallId) -> ToolCall:
    name = call.get("name")
    name = name if isinstance(name, str) else ""
    given = call.get("id")
    given = given if isinstance(given, str) and given else None
    return ToolCall(id=call_id(name, given), name=name, arguments=arguments_text(call.get("args")))


def _blob(blob: Object, kind: str, place: str, raw: Object) -> Part:
    media_type, where = blob.get("mimeType"), blob.get(place)
    is_image = isinstance(media_type, str) and media_type.startswith("image/")
    if not is_image or not isinstance(where, str):
        return Other(kind=kind, raw=raw)
    if kind == "inlineData":
        return Image(media_type=media_type, data=where)
    return Image(media_type=media_type, url=where)


def write_reply_parts(parts: Iterable[Part]) -> list[dict[str, Json]]:
    """Parts of a reply for a client that speaks Gemini; what only another format knows is left
    out."""
    return _with_seals(parts, lambda part: _written(part, keep_derived_ids=True), all_thoughts=True)


def write_request_parts(parts: Iterable[Part]) -> list[dict[str, Json]]:
    """Parts of a message for Gemini itself: thoughts only where Gemini signed them."""
    return _with_seals(
        parts, lambda part: _written(part, keep_derived_ids=False), all_thoughts=False
    )


def _with_seals(
    parts: Iterable[Part],
    write: Callable[[Part], dict[str, Json] | None],
    *,
    all_thoughts: bool,
) -> list[dict[str, Json]]:
    """Write the parts, each signature on the part after it (or on an empty text at the end)."""
    found: list[dict[str, Json]] = []
    seal: str | None = None
    for part in parts:
        if isinstance(part, Reasoning):
            signature = unmarked(part.signature)
            if part.text and (all_thoughts or signature):
                found.extend((*_left_over(seal), _thought(part.text, signature)))
                seal = None
            elif not part.text and signature:
                found.extend(_left_over(seal))
                seal = signature
            continue
        written = write(part)
        if written is None:
            continue
        if seal is not None:
            written["thoughtSignature"] = seal
            seal = None
        found.append(written)
    return [*found, *_left_over(seal)]


def _thought(text: str, signature: str | None) -> dict[str, Json]:
    return without_nones(text=text, thought=True, thoughtSignature=signature)


def _left_over(seal: str | None) -> list[dict[str, Json]]:
    """A signature that no part follows; Gemini writes it on an empty text, too."""
    return [{"text": "", "thoughtSignature": seal}] if seal is not None else []


def _written(part: Part, *, keep_derived_ids: bool) -> dict[str, Json] | None:
    match part:
        case Text():
            return {"text": part.text}
        case Image():
            return write_image(part)
        case ToolCall():
            # Gemini gave no id where we had to derive one, so it gets none back.
            call_id = part.id if keep_derived_ids or not is_derived(part.id) else None
            args = arguments_object(part.arguments)
            return {"functionCall": without_nones(id=call_id, name=part.name, args=args)}
        case _:
            return None


def write_image(image: Image) -> dict[str, Json]:
    """An image as `inlineData`, or as `fileData` where only its address is known."""
    if image.data is not None:
        mime_type = image.media_type or guess_media_type(image.data)
        return {"inlineData": {"mimeType": mime_type, "data": image.data}}
    url = image.url or ""
    return {"fileData": without_nones(mimeType=image.media_type or _type_of(url), fileUri=url)}


_TYPES = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "webp": "image/webp",
    "gif": "image/gif",
    "heic": "image/heic",
    "heif": "image/heif",
}


def _type_of(url: str) -> str | None:
    """What a URL's ending says about the type; None where it says nothing."""
    path = url.split("#", 1)[0].split("?", 1)[0]
    return _TYPES.get(path.rpartition(".")[2].lower())
