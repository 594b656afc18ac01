"""Reasoning in the Responses API, whose text clients show and whose seal they only hand back."""

from __future__ import annotations

from helmdash.providers.shared.reported import objects_in, text_in
from helmdash.providers.wire import Json, Object, Reasoning

# Before another vendor's seal, in the member that OpenAI seals its own reasoning in: only what
# came from that vendor may go back to it.
_SEAL = "helmdash-seal-1:"


def reasoning_of(item: Object) -> Reasoning:
    """What an item tells of the model's thoughts: all of them, else their summary."""
    thought = objects_in(item, "content") or objects_in(item, "summary")
    text = "\n\n".join(filter(None, (text_in(part, "text") for part in thought)))
    sealed = text_in(item, "encrypted_content") or ""
    seal = sealed.removeprefix(_SEAL) if sealed.startswith(_SEAL) else None
    return Reasoning(text=text, signature=seal or None)


def reasoning_item(
    text: str, signature: str | None, *, number: str, status: str
) -> dict[str, Json]:
    """The item of another vendor's thoughts; signature None: it seals none. What is sealed always
    says that it is ours: OpenAI refuses items that it has not made."""
    return {
        "id": f"rs_{number}",
        "type": "reasoning",
        "status": status,
        "summary": [{"type": "summary_text", "text": text}] if text else [],
        "encrypted_content": _SEAL + (signature or ""),
    }


def is_ours(item: Object) -> bool:
    """Whether these are another vendor's thoughts, in an item that we have made."""
    sealed = text_in(item, "encrypted_content")
    return item.get("type") == "reasoning" and sealed is not None and sealed.startswith(_SEAL)
