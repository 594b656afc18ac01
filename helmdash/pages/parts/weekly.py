"""The weekly report as Markdown, for a wiki, a chat or a mail."""

from __future__ import annotations

from helmdash.pages.parts import words
from helmdash.pages.parts.net_value import kind_words, signed_dollars
from helmdash.pages.parts.suggestions import shown
from helmdash.queries.evidence.shortened import NetSums
from helmdash.queries.evidence.suggestions import SuggestionView
from helmdash.queries.weekly import Traffic, WeeklyReport

# What Markdown would read as its own in names that clients choose.
_SPECIAL = str.maketrans({each: f"\\{each}" for each in "\\`*_[]<>#|"} | {"\n": " ", "\r": " "})


def markdown(report: WeeklyReport, *, project: str) -> str:
    """The whole report; ends in a line break."""
    lines = [f"# {_plain(project)}: {report.since:%Y-%m-%d} to {report.last_day} (UTC)", ""]
    for heading, found in parts(report):
        lines += [f"## {heading}", "", *(f"- {line}" for line in found), ""]
    return "\n".join(lines)


def parts(report: WeeklyReport) -> tuple[tuple[str, list[str]], ...]:
    """Its headings, each with its lines, in which names are escaped for Markdown."""
    return (
        ("Calls", [_traffic(report)]),
        ("What failed", _failed(report)),
        ("What changed", _changed(report)),
        ("What was saved", _saved(report)),
        ("Suggestions that wait", _waiting(report)),
    )


def _traffic(report: WeeklyReport) -> str:
    if report.now is None:
        return "Not counted yet: the calls of before an upgrade are still added up."
    before = f"; the week before: {_told(report.before)}" if report.before is not None else ""
    return f"{_told(report.now)}{before}."


def _told(traffic: Traffic) -> str:
    counted = traffic.calls
    if not counted.calls:
        return "no calls"
    share = words.rounded(counted.clean / counted.calls)
    return f"{counted.calls:,} calls, {share} clean, {traffic.prompt_tokens:,} prompt tokens"


def _failed(report: WeeklyReport) -> list[str]:
    found = []
    for group in report.failing:
        before = "" if group.before is None else f" ({group.before:,} the week before)"
        found.append(
            f"{_plain(group.model_key)}: {group.cause.value}, {group.calls:,} calls{before}"
        )
    if report.more:
        found.append(f"{report.more} smaller groups more")
    return found or ["Nothing."]


def _changed(report: WeeklyReport) -> list[str]:
    found = [f"{mark.at:%Y-%m-%d}: {_plain(mark.text)}" for mark in report.edits]
    if report.clears:
        found.append(f"{report.clears:,} clears of full conversations")
    if report.compactions:
        found.append(f"{report.compactions:,} compactions by clients")
    found += [f"{each.state.value}: {_suggested(each)}{_effect(each)}" for each in report.decided]
    return found or ["No budget was edited."]


def _effect(each: SuggestionView) -> str:
    effect = each.effect
    if effect is None or not effect.after.calls:
        return f" ({_plain(each.reason)})" if each.reason else ""
    return f"; since: {words.rounded(effect.after.clean / effect.after.calls)} of answers clean"


def _saved(report: WeeklyReport) -> list[str]:
    if report.saved is None:
        return ["Not counted yet."]
    found = [f"{report.saved.saved_bytes:,} bytes of catalogs, by {report.saved.trims:,} Trims"]
    if report.now is not None and report.now.cached_tokens:
        found.append(f"{report.now.cached_tokens:,} prompt tokens read from providers' caches")
    return found + [_net(sums) for sums in report.net.kinds]


def _net(sums: NetSums) -> str:
    """What the shortened prompts of one kind came to, with what is not known."""
    tokens, usd = sums.net_tokens, sums.net_usd
    said = "unknown" if tokens.sum is None else f"{words.signed(tokens.sum)} tokens"
    if usd.sum is not None:
        said += f", {signed_dollars(usd.sum)} USD"
    if tokens.sum is not None and tokens.unknown:
        said += f"; {tokens.unknown:,} of them unknown"
    return f"Net value of {sums.count:,} × {kind_words(sums.name)}: {said}"


def _waiting(report: WeeklyReport) -> list[str]:
    found = [f"{_suggested(each)}. {_plain(each.why)}" for each in report.waiting]
    if report.more_waiting:
        found.append(f"{report.more_waiting} more")
    return found or ["None."]


def _suggested(each: SuggestionView) -> str:
    changes = ", ".join(
        f"{change.name.lower()} {change.today} → {change.suggested}"
        for change in shown(each).changes
    )
    return f"{_plain(each.model)}: {changes}"


def _plain(text: str) -> str:
    return text.translate(_SPECIAL)
