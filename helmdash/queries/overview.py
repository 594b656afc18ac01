"""The first page: how many conversations stand where, and which want somebody now."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from helmdash.core.budgets.levels import Level
from helmdash.queries import failures, line_edits
from helmdash.queries.calls import calls
from helmdash.queries.calls import listing as call_listing
from helmdash.queries.calls.calls import CallView
from helmdash.queries.calls.filters import CallFilters
from helmdash.queries.conversations import care, conversations, listing, under_way
from helmdash.queries.conversations.care import NeedsAttention
from helmdash.queries.conversations.conversations import ConversationView
from helmdash.queries.conversations.filters import ConversationFilters
from helmdash.queries.conversations.under_way import UnderWay
from helmdash.queries.failures import Failing

_SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """Everything the first page shows, for one project.

    levels_today: by today's budget, of the conversations here where it is another than the one of
    their newest call.
    """

    counters: dict[Level, int]
    needs_attention: tuple[NeedsAttention, ...]
    needs_attention_count: int
    under_way: tuple[UnderWay, ...]
    failing: Failing
    recent: tuple[ConversationView, ...]
    latest_calls: tuple[CallView, ...]
    levels_today: dict[str, Level]

    @property
    def is_empty(self) -> bool:
        """No call has ever been recorded in the project."""
        return not self.latest_calls


def overview(
    *, project_id: int, now: datetime, since: datetime | None, until: datetime | None
) -> Overview:
    """The first page; what fails is that of a range, from `since` to before `until`. Twenty
    queries at most."""
    everything = ConversationFilters()
    recent = listing.page(project_id=project_id, filters=everything, limit=_SHOWN)
    latest = call_listing.page(project_id=project_id, filters=CallFilters(), limit=_SHOWN)
    needs_attention = care.needs_attention(project_id=project_id, now=now, limit=_SHOWN)
    is_full = len(needs_attention) == _SHOWN
    return Overview(
        counters=conversations.counters(project_id=project_id),
        needs_attention=needs_attention,
        needs_attention_count=care.count_needs_attention(project_id=project_id)
        if is_full
        else len(needs_attention),
        under_way=under_way.under_way(project_id=project_id, now=now, limit=_SHOWN),
        failing=failures.failing(project_id=project_id, now=now, since=since, until=until),
        recent=recent.items,
        latest_calls=latest.items,
        levels_today=line_edits.levels_today(
            project_id=project_id, found=(*needs_attention, *recent.items)
        ),
    )


def has_calls(*, project_id: int) -> bool:
    """Whether anything was ever recorded in the project. One query."""
    return calls.newest_mark(project_id=project_id) > 0
