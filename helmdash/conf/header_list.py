"""Headers as people write them on one line, or on several."""

from __future__ import annotations

from urllib.parse import unquote


def parse_headers(text: str) -> tuple[tuple[str, str], ...]:
    """`name=value` with commas between, percent-encoded where need be (the form of
    OTEL_EXPORTER_OTLP_HEADERS), or `Name: value` on lines. Raises ValueError for anything else."""
    found: list[tuple[str, str]] = []
    is_lines = "\n" in text or (":" in text.split("=", 1)[0])
    for part in text.splitlines() if is_lines else text.split(","):
        if not part.strip():
            continue
        name, mark, value = part.partition(":" if is_lines else "=")
        value = value.strip() if is_lines else unquote(value.strip())
        name = name.strip().lower()
        is_plain = name.replace("-", "").replace("_", "").isalnum() and name.isascii()
        if not mark or not is_plain or not value.isascii() or not value.isprintable():
            # Not what it says: a key that was put down without a name would be told.
            raise ValueError(
                f"header {len(found) + 1} is no header: write name=value, with commas between"
            )
        found.append((name, value))
    return tuple(found)
