"""The weekly report in lines, for a wiki, a chat or a mail: pieces of text, of which those that
count something lead to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urlencode

from django.urls import reverse

from helmdash.core.text.counts import count_of
from helmdash.core.text.time_ranges import TimeRange
from helmdash.pages.parts import words
from helmdash.pages.parts.budgets.suggestions import shown
from helmdash.pages.parts.net_value import kind_words, signed_dollars
from helmdash.queries.evidence.net_value import MOST_READ
from helmdash.queries.evidence.shortened import NetPart, NetSums
from helmdash.queries.evidence.suggestions import SuggestionView
from helmdash.queries.weekly import Traffic, WeeklyReport

# What Markdown would read as its own in names that clients choose.
_SPECIAL = str.maketrans({each: f"\\{each}" for each in "\\`*_[]<>#|"} | {"\n": " ", "\r": " "})


class Piece(NamedTuple):
    """A part of a line. path: of the page that lists what it counts, with its project; "" where it
    counts nothing."""

    text: str
    path: str = ""


Line = list[Piece]
Parts = Sequence[tuple[str, Sequence[Line]]]


def markdown(parts: Parts, report: WeeklyReport, *, project: str, base: str) -> str:
    """The whole report; ends in a line break. base: the address of this server, which paths are put
    behind."""
    lines = [f"# {_plain(project)}: {report.since:%Y-%m-%d} to {report.last_day} (UTC)", ""]
    for heading, found in parts:
        lines += [f"## {heading}", "", *(f"- {_marked(line, base)}" for line in found), ""]
    return "\n".join(lines)


def _marked(line: Line, base: str) -> str:
    return "".join(
        f"[{_plain(piece.text)}]({base}{piece.path})" if piece.path else _plain(piece.text)
        for piece in line
    )


def _plain(text: str) -> str:
    return text.translate(_SPECIAL)


def parts(report: WeeklyReport, *, slug: str) -> Parts:
    """Its headings, each with its lines. slug: of the project, which links lead to."""
    told = _Told(report, slug)
    return (
        ("Calls", [told.traffic()]),
        ("What failed", told.failed()),
        ("What changed", told.changed()),
        ("What was saved", told.saved()),
        ("Suggestions that wait", told.waiting()),
    )


class _Told:
    """The lines of one report."""

    def __init__(self, report: WeeklyReport, slug: str) -> None:
        self._report = report
        self._slug = slug
        self._week = TimeRange(since=report.since, until=report.until).exact
        before = report.since - (report.until - report.since)
        self._before = TimeRange(since=before, until=report.since).exact

    def traffic(self) -> Line:
        report = self._report
        if report.now is None:
            return [Piece("Not counted yet: the calls of before an upgrade are still added up.")]
        line = self._counted(report.now, self._week)
        if report.before is not None:
            line += [Piece("; the week before: "), *self._counted(report.before, self._before)]
        return [*line, Piece(".")]

    def _counted(self, traffic: Traffic, span: str) -> Line:
        counted = traffic.calls
        if not counted.calls:
            return [Piece("no calls")]
        share = words.rounded(counted.clean / counted.calls)
        return [
            Piece(count_of(counted.calls, "call"), self._calls(span)),
            Piece(", "),
            Piece(f"{share} clean", self._calls(span, query="outcome:clean")),
            Piece(", "),
            Piece(f"{traffic.prompt_tokens:,} prompt tokens", self._calls(span, query="has:usage")),
        ]

    def failed(self) -> list[Line]:
        found = []
        for group in self._report.failing:
            line = [
                Piece(f"{group.model_key}: {group.cause.value}, "),
                Piece(
                    count_of(group.calls, "call"),
                    self._calls(self._week, query=group.query),
                ),
            ]
            if group.before is not None:
                path = self._calls(self._before, query=group.query) if group.before else ""
                line += [Piece(" ("), Piece(f"{group.before:,}", path), Piece(" the week before)")]
            found.append(line)
        if self._report.more:
            path = self._calls(self._week, cause="any")
            said = count_of(self._report.more, "smaller group")
            found.append([Piece(f"and {said}", path)])
        return found or [[Piece("Nothing.")]]

    def changed(self) -> list[Line]:
        report = self._report
        found = []
        for mark in report.edits:
            given = {"model": mark.subject} if mark.subject else {}
            found.append(
                [Piece(f"{mark.at:%Y-%m-%d}: "), Piece(mark.text, self._to("budgets", **given))]
            )
        for count, said, kind in (
            (report.clears, "of full conversations", "clear"),
            (report.compactions, "by clients", "compaction"),
        ):
            if count:
                path = self._to("net-value", kind=kind, range=self._week)
                found.append([Piece(f"{count_of(count, kind)} {said}", path)])
        for each in report.decided:
            found.append(
                [Piece(f"{each.state.value}: "), *self._suggested(each), *self._effect(each)]
            )
        if report.more_decided:
            said = f"{report.more_decided:,} more suggestions were decided"
            found.append([Piece(said, self._to("budgets"))])
        return found or [[Piece("No budget was edited.")]]

    def _effect(self, each: SuggestionView) -> Line:
        effect = each.effect
        if effect is None or not effect.after.calls:
            return [Piece(f" ({each.reason})")] if each.reason else []
        share, told = words.rounded(effect.after.clean / effect.after.calls), shown(each)
        return [
            Piece("; since: "),
            Piece(share, self._own(told.after_clean)),
            Piece(" of "),
            Piece(count_of(effect.after.calls, "answer"), self._own(told.after)),
            Piece(" clean"),
        ]

    def saved(self) -> list[Line]:
        report = self._report
        if report.saved is None:
            return [[Piece("Not counted yet.")]]
        path = self._to("trims", outcome="cut", range=self._week)
        found = [
            [
                Piece(f"{report.saved.saved_bytes:,} bytes", path),
                Piece(" of catalogs, by "),
                Piece(count_of(report.saved.trims, "Trim"), path),
            ]
            # Packs that cut by themselves report their Trims, which the net value below is of.
            if report.saved.trims
            else [Piece("HelmDash cut no catalog")]
        ]
        if report.now is not None and report.now.cached_tokens:
            path = self._calls(self._week, query="has:cached")
            said = f"{report.now.cached_tokens:,} prompt tokens"
            found.append([Piece(said, path), Piece(" read from providers' caches")])
        found += [self._net(sums) for sums in report.net.kinds]
        if report.net.is_sample:
            said = f"Net values are of the newest {MOST_READ} Trims and {MOST_READ} fresh starts."
            found.append([Piece(said)])
        return found

    def _net(self, sums: NetSums) -> Line:
        """What the shortened prompts of one kind came to, with what is not known."""
        given = {"kind": sums.name, "range": self._week}
        path = self._to("net-value", **given)
        tokens, usd = sums.net_tokens, sums.net_usd
        said = "unknown" if tokens.sum is None else f"{words.signed(tokens.sum)} tokens"
        if usd.sum is not None:
            said += f", {signed_dollars(usd.sum)} USD"
        line = [
            Piece("Net value of "),
            Piece(f"{sums.count:,}", path),
            Piece(f" × {kind_words(sums.name)}: "),
            Piece(said, path),
        ]
        if tokens.sum is not None and tokens.unknown:
            unknown = self._to("net-value", **given, part=NetPart.NET_UNKNOWN.value)
            line += [Piece("; "), Piece(f"{tokens.unknown:,}", unknown), Piece(" of them unknown")]
        if usd.sum is not None and usd.unknown:
            unknown = self._to("net-value", **given, part=NetPart.USD_UNKNOWN.value)
            end = " unknown in USD" if tokens.unknown else " of them unknown in USD"
            line += [Piece("; "), Piece(f"{usd.unknown:,}", unknown), Piece(end)]
        return line

    def waiting(self) -> list[Line]:
        found = []
        for each in self._report.waiting:
            why = [Piece(text, self._own(calls)) for text, calls in shown(each).why]
            found.append([*self._suggested(each), Piece(". "), *why])
        if self._report.more_waiting:
            found.append([Piece(f"{self._report.more_waiting} more", self._to("budgets"))])
        return found or [[Piece("None.")]]

    def _suggested(self, each: SuggestionView) -> Line:
        """The calls that an edit was learned from are what its numbers lead to."""
        told = shown(each)
        changes = ", ".join(
            f"{change.name.lower()} {change.today} → {change.suggested}" for change in told.changes
        )
        return [Piece(f"{each.model}: "), Piece(changes, self._own(told.calls))]

    def _calls(self, span: str, **given: str) -> str:
        return self._to("calls", **given, range=span)

    def _to(self, page: str, **given: str) -> str:
        return f"{reverse(page)}?{urlencode({'project': self._slug, **given})}"

    def _own(self, path: str) -> str:
        """A page's own link, with the project besides."""
        return f"{path}&{urlencode({'project': self._slug})}" if path else ""
