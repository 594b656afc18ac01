"""What no page may hold: anything inline, from another host, or drawn before the page is whole."""

from __future__ import annotations

from html.parser import HTMLParser


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.ids: list[str] = []
        self.awaited: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        where = f"<{tag} {given}>"
        if tag == "style" or "style" in given:
            self.found.append(f"inline style: {where}")
        if tag == "script" and not given.get("src"):
            self.found.append(f"inline script: {where}")
        for name, value in given.items():
            if name.startswith("on"):
                self.found.append(f"inline handler: {where}")
            if name in ("src", "href", "action") and (value or "").startswith(("http", "//")):
                self.found.append(f"another host: {where}")
            if name.startswith("hx-on") or (value or "").startswith(("javascript:", "js:")):
                self.found.append(f"inline script: {where}")
        if given.get("rel") == "expect" and given.get("blocking") == "render":
            self.awaited.append(str(given.get("href")).removeprefix("#"))
        polls = (given.get("hx-trigger") or "").startswith("every")
        if "hx-get" in given and not polls and not (given.get("href") or given.get("action")):
            self.found.append(f"does nothing without scripts: {where}")
        if given.get("id"):
            self.ids.append(str(given["id"]))


def faults(html: str) -> list[str]:
    """Everything wrong with a page, and ids that are there twice."""
    reader = _Reader()
    reader.feed(html)
    twice = sorted({each for each in reader.ids if reader.ids.count(each) > 1})
    found = reader.found + [f"id twice: {each}" for each in twice]
    if 'class="shell"' in html and not _is_drawn_whole(html, reader):
        found.append(f"drawn before it is whole: what it waits for is {reader.awaited}")
    return found


def _is_drawn_whole(html: str, reader: _Reader) -> bool:
    """Whether the page's first drawing waits for the last element of its body."""
    if len(reader.awaited) != 1:
        return False
    at = html.rfind(f'id="{reader.awaited[0]}"')
    tag = html[html.rfind("<", 0, at) + 1 : at].split()[0]
    rest = html[html.rfind(f"</{tag}>") :].removeprefix(f"</{tag}>").split()
    return at > 0 and rest in (["</body>", "</html>"], ["</body></html>"])
