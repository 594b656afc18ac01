"""Sub-agents that are known by their kind first, and by their id when another door tells it.

Claude Code's log records say `agent:builtin:Explore`, which several agents of a session may be; its
headers, spans and transcripts say which one it is. A conversation by its kind takes the name of the
first agent that is known to be in it, and its own one leads there from then on; a call of another
agent moves to the conversation of that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from django.db.models import QuerySet

from helmdash.core.budgets.budget_table import BudgetTable
from helmdash.core.calls.joining import BY_KIND, LOGGED_BY_KIND, alias_of, session_of_agent
from helmdash.core.calls.routes import CallRoute
from helmdash.operations.care import pending_prompts
from helmdash.operations.recording.conversation_rows import lock_by_name
from helmdash.operations.recording.judged.judging import Judged, judge
from helmdash.operations.recording.told_before import Beside, LentPlace, as_told, read_beside
from helmdash.operations.recording.withdrawing import take_back
from helmdash.records.call_names import Place, add_names, calls_at, find_places, row_to_name
from helmdash.records.models import Call, Conversation

_BY_LOG = CallRoute.OTLP_LOG.value


def settle_agents(
    project_id: int, judged: Sequence[Judged], rules: BudgetTable, *, now: datetime
) -> list[Judged]:
    """Bring calls that log records told of before to the sub-agents that these name by their ids;
    gives those of the stored that are to be recorded anew, before these.

    To be called at the beginning of a transaction: it locks the conversations of all.
    """
    told = [item for item in judged if session_of_agent(item.capture) is not None]
    places = _places(project_id, told)
    if not places:
        return []
    names = {row.conversation.name for row in _stored(project_id, places) if row.conversation}
    lock_by_name(project_id, names | {str(item.capture.conversation) for item in told})
    stored = {row.pk: row for row in _stored(project_id, places).select_for_update(of=("self",))}
    anew: list[Judged] = []
    for item in told:
        found = (places.get(name) for name in _names(item))
        row = next((stored.pop(at.call_id) for at in found if at and at.call_id in stored), None)
        # Read anew for each: the one before may have given it its name.
        talk = Conversation.objects.filter(pk=row.conversation_id or 0).first() if row else None
        if row is None or talk is None or not _is_other(talk, item):
            continue
        if not _take_name(talk, row, item):
            anew.append(_moved(talk, row, item, rules, now))
    return anew


def _names(item: Judged) -> tuple[str, ...]:
    return (item.capture.id or "", *item.capture.also_known)


def _places(project_id: int, told: Sequence[Judged]) -> Mapping[str, Place]:
    return find_places(project_id, [name for item in told for name in _names(item)])


def _stored(project_id: int, places: Mapping[str, Place]) -> QuerySet[Call]:
    """The calls that log records alone have told of."""
    rows = calls_at(project_id, places.values()).filter(routes=_BY_LOG)
    return rows.filter(conversation__isnull=False).select_related("conversation").order_by("id")


def _is_other(talk: Conversation, item: Judged) -> bool:
    """Whether a stored call is in the conversation of another sub-agent of the same session."""
    session = session_of_agent(item.capture)
    return talk.name != item.capture.conversation and talk.name.startswith(f"{session}:")


def _take_name(talk: Conversation, row: Call, item: Judged) -> bool:
    """Give a conversation by its kind the agent's name, where that has none yet; whether it was
    one."""
    name, kind = str(item.capture.conversation), talk.name
    of_project = Conversation.objects.filter(project_id=talk.project_id)
    is_by_kind = kind.startswith(f"{session_of_agent(item.capture)}{BY_KIND}")
    if not is_by_kind or of_project.filter(name=name).exists():
        return False
    of_project.filter(pk=talk.pk).update(name=name, parent=item.capture.parent)
    of_project.filter(parent=kind).update(parent=name)
    pending_prompts.rename(talk.project_id, kind, name)
    add_names([(alias_of(LOGGED_BY_KIND, kind), row_to_name(row))])
    return True


def _moved(
    talk: Conversation, row: Call, item: Judged, rules: BudgetTable, now: datetime
) -> Judged:
    """A stored call as it is recorded anew, once it has left its conversation."""
    lent = LentPlace(row.name, str(item.capture.conversation), item.capture.parent)
    capture = as_told(row, lent, Beside(read_beside([row]).usages, {}))
    take_back(row, talk, now)
    return judge(capture, rules, caller=row.caller, now=now)
