"""What people say about trouble: that calls which fail are mended, or are not to be told for now.

Every word is kept with who said it and when; the newest one counts (queries.failures).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from helmdash.core.access.permissions import Actor, Right, require
from helmdash.core.calls.failures import FailureCause
from helmdash.queries.access import ProjectInfo
from helmdash.queries.failures import GroupState
from helmdash.records.models import FailureMark

# Long enough for a provider to mend itself, short enough that nobody forgets it.
MUTE: Final = timedelta(days=1)


def mark_failures(
    *,
    actor: Actor,
    project: ProjectInfo,
    cause: FailureCause,
    model_key: str,
    state: GroupState,
    now: datetime,
) -> None:
    """Say of a model's calls that failed for a cause that they are resolved, muted or open again.

    Resolved ones come back with the next call that fails so; muted ones after MUTE, if one did.
    Raises Forbidden.
    """
    require(actor, Right.TRIAGE, project_id=project.id)
    FailureMark.objects.create(
        project_id=project.id,
        cause=cause.value,
        model_key=model_key,
        state=state.value,
        by=str(actor)[:150],
        at=now,
        until=now + MUTE if state is GroupState.MUTED else None,
    )
