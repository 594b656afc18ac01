"""What is under way to one receiver: calls of its oldest rows, in requests that it may refuse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from helmdash.core.telemetry.judged import JudgedSpan, judged_span
from helmdash.operations.exporting.outbox import Waiting
from helmdash.operations.exporting.receivers import Target
from helmdash.queries.exporting import judged_calls
from helmdash.records.call_names import Place

if TYPE_CHECKING:
    from helmdash.upstream.services.trace_export import Sent

# So many calls refused one by one, and none taken: it is not the calls.
ALL_REFUSED: Final = 20

Item = tuple[tuple[int, Place], JudgedSpan]
"""A call by its project and place, and the span that tells of it."""


@dataclass(slots=True)
class ExportBatch:
    """Calls that were taken for a receiver, and what it has said of them so far.

    waiting: requests that are yet to be made, the next one last. failure: why that has to be at
    another time; "": it need not. problem: why it refused some for good.
    """

    target: Target
    taken: tuple[Waiting, ...]
    waiting: list[Sequence[Item]]
    exported: int = 0
    refused: int = 0
    problem: str = ""
    failure: str = ""
    retry_after_s: float | None = None
    _asked: Sequence[Item] = field(default=())

    def next(self) -> list[JudgedSpan]:
        """What to send now; empty where all is said."""
        self._asked = () if self.failure or not self.waiting else self.waiting.pop()
        return [span for _, span in self._asked]

    def hear(self, sent: Sent) -> None:
        """What the receiver said of the newest request.

        What it refuses for good or for its size is halved until the one is found that it does not
        take. One that takes none of many is set up wrongly, and loses none.
        """
        some = self._asked
        if sent.is_refused and len(some) > 1:
            middle = len(some) // 2
            self.waiting += [some[middle:], some[:middle]]
        elif sent.is_refused:
            self.refused, self.problem = self.refused + 1, sent.problem
            if not self.exported and self.refused >= ALL_REFUSED:
                self.failure = sent.problem
        elif sent.problem:
            self.fail(sent.problem)
            self.retry_after_s = sent.retry_after_s
        else:
            rejected = min(sent.rejected, len(some))
            self.refused += rejected
            self.exported += len(some) - rejected

    def fail(self, problem: str) -> None:
        """The newest request came to nothing, or could not be made."""
        self.waiting.append(self._asked)
        self.failure = problem

    @property
    def is_as_before(self) -> bool:
        """It took nothing, and has not answered for all: what it refused is not counted either, for
        it may be set up wrongly."""
        return bool(self.waiting or self.failure) and not self.exported

    def unanswered(self) -> set[tuple[int, Place]]:
        """Those of the calls that it has not answered for."""
        return {key for some in self.waiting for key, _ in some}


def batch_of(target: Target, taken: tuple[Waiting, ...]) -> ExportBatch:
    """Of a call that waits twice, since another door has completed it meanwhile, one. None of
    those that have been erased since."""
    items: list[Item] = []
    seen: set[tuple[int, Place]] = set()
    for each in taken:
        fresh = [place for place in each.places if (each.project_id, place) not in seen]
        seen.update((each.project_id, place) for place in fresh)
        found = judged_calls(project_id=each.project_id, places=fresh)
        items += [((each.project_id, place), judged_span(call)) for place, call in found.items()]
    return ExportBatch(target, taken, [items] if items else [])
