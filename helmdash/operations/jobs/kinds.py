"""The jobs that there are."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from helmdash import conf
from helmdash.core.access.permissions import SHELL
from helmdash.core.rollups.periods import moment_of
from helmdash.core.text.counts import count_of
from helmdash.operations import triage, weekly_mail
from helmdash.operations.alerts import delivering, looking, noting_lags, repeating
from helmdash.operations.alerts.delivering import Sending
from helmdash.operations.database import statistics
from helmdash.operations.demo import loading
from helmdash.operations.evidence import refreshing, trialling
from helmdash.operations.jobs import folding
from helmdash.operations.jobs.leases import Done, Progress
from helmdash.operations.jobs.running import JobKind, JobThread, Run, run_now
from helmdash.operations.recorder import recorder
from helmdash.operations.retention import retaining
from helmdash.operations.retention.retaining import MonthsDropped, ProjectRetained, Swept
from helmdash.operations.rollups import rebuilding
from helmdash.operations.rollups.rebuilding import Rebuilt
from helmdash.operations.whatif import running as whatif
from helmdash.queries.access.access import ProjectInfo, projects
from helmdash.records.models import Job

# After an upgrade, each time that a process looks for jobs: a tenth of a thread's time, so that
# the gateway beside it hardly waits.
_COUNT_SECONDS = 0.2
# The job that fills the demo project; who may manage the demo may start and cancel it.
DEMO = "demo"
_SUGGESTIONS = "suggestions"
# A new database grows fast: the wait doubles from the first to the last.
_FIRST_STATISTICS, _LAST_STATISTICS = timedelta(seconds=30), timedelta(hours=1)
# Where that looks at every month of calls, of which one has changed.
_LAST_DEAR_STATISTICS = timedelta(days=1)


def _wake(run: Run) -> Done:
    woken = 0
    while some := triage.wake(now=run.now):
        woken += some
        run.go_on()
    return Done(told=f"showed {count_of(woken, 'conversation')} again", due_at=None)


def _count_older(run: Run) -> Done:
    until = time.monotonic() + _COUNT_SECONDS

    def is_over() -> bool:
        run.go_on()
        return time.monotonic() > until

    is_left = rebuilding.rebuild_some(is_over=is_over)
    return Done(told="more are left" if is_left else "all are counted", due_at=None)


def _look_for_alerts(run: Run) -> Done:
    messages = looking.look_at_due(now=run.now, go_on=run.go_on)
    messages += repeating.tell_again(now=run.now, go_on=run.go_on)
    return Done(told=f"made {count_of(messages, 'message')}", due_at=None)


def _note_lags(run: Run) -> Done:
    rows = noting_lags.note(now=run.now)
    return Done(told=f"noted {count_of(rows, 'change')}", due_at=run.now + noting_lags.EVERY)


def _deliver_alerts(run: Run, sending: Sending) -> Done:
    sent = delivering.deliver_due(now=run.now, sending=sending, go_on=run.go_on)
    return Done(told=f"sent {count_of(sent, 'message')}", due_at=None)


def _refresh_statistics(run: Run) -> Done:
    wait = timedelta(seconds=float(run.cursor)) if run.cursor else _FIRST_STATISTICS
    wait = min(2 * wait, _LAST_DEAR_STATISTICS if statistics.is_dear() else _LAST_STATISTICS)
    tables = statistics.refresh()
    return Done(
        told=f"looked at {count_of(tables, 'table')}",
        due_at=run.now + wait,
        cursor=str(wait.total_seconds()),
    )


def _retain(
    run: Run, tell: Callable[[MonthsDropped | ProjectRetained | Swept], None] | None = None
) -> Done:
    calls = texts = conversations = 0
    gone: Counter[tuple[str, str]] = Counter()

    def step(project: ProjectInfo, what: str, rows: int) -> None:
        gone[project.slug, what] += rows
        so_far = sum(each for (_, kind), each in gone.items() if kind == "calls")
        words = f"{project.slug}: {gone[project.slug, what]:,} {what}"
        run.tell(Progress(step=words, done=so_far, of=to_go))

    dropped = retaining.drop_months(actor=SHELL, now=run.now)
    if tell is not None:
        tell(dropped)
    run.go_on()
    # Calls alone: all else is little beside them.
    to_go = retaining.count_calls(now=run.now)
    for done in retaining.retain(actor=SHELL, now=run.now, step=step):
        if done.rows is not None:
            calls += done.rows.calls
            conversations += done.rows.conversations
        texts += done.texts.calls if done.texts is not None else 0
        if tell is not None:
            tell(done)
        run.go_on()
    swept = retaining.sweep(now=run.now)
    if tell is not None:
        tell(swept)
    months = f"dropped {count_of(len(dropped.months), 'month')}, " if dropped.months else ""
    rows = f"deleted {count_of(calls, 'call')}, {count_of(conversations, 'conversation')}"
    return Done(
        told=f"{months}{rows}, the texts of {count_of(texts, 'call')}",
        due_at=next_retention(run.now),
    )


def _rebuild(
    run: Run,
    slugs: Collection[str] = (),
    tell: Callable[[ProjectInfo, Rebuilt], None] = lambda project, done: None,
    anew: bool | None = None,
) -> Done:
    """All projects, or some, by their number. anew: None: all but the one that the last run was at,
    which its cursor tells."""
    calls = wrong = 0
    reached = int(run.cursor or 0) if anew is None else 0
    wanted = [each for each in projects() if not slugs or each.slug in slugs]
    for project in sorted(wanted, key=lambda each: each.id):
        if project.id < reached:
            continue
        # Who asked for some projects does not decide where all of them are gone on with.
        cursor = "" if slugs else str(project.id)
        run.tell(Progress(step=project.slug, done=calls, cursor=cursor))

        def progress(done: Rebuilt, slug: str = project.slug, before: int = calls) -> None:
            back_to = moment_of(done.down_to or 0)
            words = f"{slug}: back to {back_to:%Y-%m-%d %H:%M}, {done.calls:,} calls"
            run.tell(Progress(step=words, done=before + done.calls))

        done = rebuilding.rebuild(
            actor=SHELL,
            project_id=project.id,
            progress=progress,
            anew=project.id != reached if anew is None else anew,
        )
        tell(project, done)
        calls, wrong = calls + done.calls, wrong + done.wrong
    told = f"counted {count_of(calls, 'call')}, corrected {count_of(wrong, 'figure')}"
    return Done(told=told, due_at=None)


def _suggest(run: Run) -> Done:
    """Projects with calls that were added since the last run, or all where budgets were edited; its
    cursor tells the newest fold, and the newest edits."""
    began = time.monotonic()
    folded_to, _, known = run.cursor.partition(" ")
    reached, edits = int(folded_to or 0), refreshing.newest_edits()
    found = 0
    slugs = {each.id: each.slug for each in projects()}
    for project_id, folded in refreshing.projects_with_news(reached if edits == known else 0):
        go_on = partial(run.tell, Progress(step=slugs.get(project_id, "")))
        found += refreshing.refresh(project_id=project_id, now=run.now, go_on=go_on)
        reached = max(reached, folded)
    # A sixtieth of a thread's time at most.
    wait = max(_LEAST_SUGGESTIONS, timedelta(seconds=60 * (time.monotonic() - began)))
    return Done(
        told=count_of(found, "suggestion"), due_at=run.now + wait, cursor=f"{reached} {edits}"
    )


def _is_edited(now: datetime) -> bool:
    """Budgets were edited since the last run, so that suggestions may be of yesterday's. Not where
    somebody ended that run: the next one comes at its time."""
    row = Job.objects.filter(name=_SUGGESTIONS).values_list("cursor", "outcome").first()
    if row is None or row[1] == "cancelled":
        return False
    return row[0].partition(" ")[2] != refreshing.newest_edits()


def _run_what_ifs(run: Run) -> Done:
    def tell(words: str, done: int, of: int) -> None:
        run.tell(Progress(step=words, done=done, of=of))

    return Done(told=f"answered {whatif.run_all(tell)}", due_at=None)


def _look_at_trials(run: Run) -> Done:
    began = time.monotonic()
    ended = trialling.look(now=run.now, go_on=run.go_on)
    # As above.
    wait = max(_LEAST_TRIALS, timedelta(seconds=60 * (time.monotonic() - began)))
    return Done(told=f"ended {count_of(ended, 'trial')}", due_at=run.now + wait)


def _fill_demo(run: Run) -> Done:
    # With a cursor each step is noted, and a cancel heard: the whole takes some seconds.
    def progress(step: str, done: int, of: int) -> None:
        run.tell(Progress(step=step, done=done, of=of, cursor=""))

    try:
        calls = loading.fill_demo(now=run.now, progress=progress)
    except loading.NoDemo:
        return Done(told="the demo project was removed", due_at=None)
    return Done(told=f"recorded {count_of(calls, 'call')}", due_at=None)


def _mail_week(run: Run) -> Done:
    mailed = weekly_mail.send_due(now=run.now, go_on=run.go_on)
    due_at = run.now + weekly_mail.AGAIN if mailed.is_again else weekly_mail.next_due(run.now)
    not_sent = f", {mailed.failed} could not be sent" if mailed.failed else ""
    return Done(told=f"mailed {count_of(mailed.sent, 'report')}{not_sent}", due_at=due_at)


def next_retention(now: datetime) -> datetime:
    """When it is due next, after a moment."""
    at = now.replace(hour=max(conf.env().retain_hour, 0), minute=0, second=0, microsecond=0)
    return at if at > now else at + timedelta(days=1)


_LEAST_SUGGESTIONS = timedelta(minutes=1)
_LEAST_TRIALS = timedelta(minutes=1)
QUICK = (
    folding.IN_A_SERVER,
    JobKind(
        name="snoozes",
        words="Show conversations again whose snooze is over",
        run=_wake,
        first_due=lambda now: None,
        is_wanted=triage.is_any_over,
    ),
    JobKind(
        name="older-calls",
        words="Count calls from before an upgrade brought rollups",
        run=_count_older,
        first_due=lambda now: None,
        is_wanted=rebuilding.is_wanted,
    ),
    JobKind(
        name="alerts",
        words="Look at what alert rules watch",
        run=_look_for_alerts,
        first_due=lambda now: None,
        is_wanted=looking.is_due,
    ),
    JobKind(
        name="lags",
        words="Note how far recorder and exporters are behind",
        run=_note_lags,
        first_due=lambda now: now,
    ),
    JobKind(
        name="statistics",
        words="Tell the database how its tables are filled",
        run=_refresh_statistics,
        first_due=lambda now: now + _FIRST_STATISTICS,
    ),
    JobKind(
        name="trials",
        words="Look at trials of suggestions, and end those that are over or do harm",
        run=_look_at_trials,
        first_due=lambda now: now + _LEAST_TRIALS,
    ),
)
_RETENTION = JobKind(
    name="retention",
    words="Delete what projects keep no longer",
    run=_retain,
    first_due=next_retention,
)
_REBUILD = JobKind(
    name="rebuild",
    words="Count all calls anew for the rollups",
    run=_rebuild,
    first_due=lambda now: None,
)
_SUGGEST = JobKind(
    name=_SUGGESTIONS,
    words="Look for budgets that recorded calls suggest to edit",
    run=_suggest,
    first_due=lambda now: now + _LEAST_SUGGESTIONS,
    is_wanted=_is_edited,
)
_WEEKLY = JobKind(
    name="weekly-report",
    words="Mail the weekly report to who subscribed",
    run=_mail_week,
    first_due=weekly_mail.next_due,
)
# Not to keep figures waiting: each may take an hour. People may start and cancel them.
LONG = (_RETENTION, _REBUILD, _SUGGEST)
# By a thread of their own: somebody looks at the page and waits, where a retention may take an
# hour.
_WHAT_IF = JobKind(
    name="what-if",
    words="Try edits of budgets on recorded calls and fits",
    run=_run_what_ifs,
    first_due=lambda now: None,
    is_wanted=whatif.is_due,
)
_DEMO = JobKind(
    name=DEMO,
    words="Load the demo data",
    run=_fill_demo,
    first_due=lambda now: None,
)
# Done above this package, for it asks other hosts (helmdash.exporting).
EXPORT = "export"
_DELIVERY_NAME, _DELIVERY_WORDS = "alert-delivery", "Send messages of alerts"
WORDS = {
    **{kind.name: kind.words for kind in (*QUICK, *LONG, _WHAT_IF, _DEMO, _WEEKLY)},
    _DELIVERY_NAME: _DELIVERY_WORDS,
    EXPORT: "Send calls to the receivers of OTLP traces",
}


def delivery(sending: Sending) -> JobKind:
    """The job that sends messages of alerts, by what the faces above can call other hosts with."""
    return JobKind(
        name=_DELIVERY_NAME,
        words=_DELIVERY_WORDS,
        run=partial(_deliver_alerts, sending=sending),
        first_due=lambda now: None,
        is_wanted=delivering.is_due,
    )


def startable() -> frozenset[str]:
    """The jobs that a server does when a person says so."""
    return frozenset(kind.name for kind in _long())


def cancellable() -> frozenset[str]:
    """The jobs that a person may end, wherever they run."""
    return frozenset(kind.name for kind in LONG)


def retain_now(
    tell: Callable[[MonthsDropped | ProjectRetained | Swept], None],
    show: Callable[[str], None],
) -> bool:
    """Delete what projects keep no longer, now. False: a server is at it.

    tell: hears of each project, and in the end of what belongs to none; show: of each batch.
    """
    kind = replace(_RETENTION, run=partial(_retain, tell=tell))
    return run_now(kind, holder=recorder().name, show=show)


def rebuild_now(
    slugs: Collection[str],
    tell: Callable[[ProjectInfo, Rebuilt], None],
    show: Callable[[str], None],
    *,
    anew: bool,
) -> bool:
    """Count all calls of some projects, or of all. False: a server is at it.

    anew: not from where each was broken off. tell: hears of each project; show: of each step.
    """
    kind = replace(_REBUILD, run=partial(_rebuild, slugs=slugs, tell=tell, anew=anew))
    return run_now(kind, holder=recorder().name, show=show)


def demo_now(tell: Callable[[str], object], show: Callable[[str], None]) -> bool:
    """Fill the demo project that `begin_demo` made. False: a server is at it.

    tell: hears what that came to; show: of each step.
    """

    def run(run: Run) -> Done:
        done = _fill_demo(run)
        tell(done.told)
        return done

    return run_now(replace(_DEMO, run=run), holder=recorder().name, show=show)


def weekly_now(tell: Callable[[str], object], show: Callable[[str], None]) -> bool:
    """Mail the newest week now, to whom it was not sent yet. False: a server is at it.

    tell: hears what that came to; show: that it waits for who is at it.
    """

    def run(run: Run) -> Done:
        done = _mail_week(run)
        tell(done.told)
        return done

    return run_now(replace(_WEEKLY, run=run), holder=recorder().name, show=show)


_threads: list[JobThread] = []


def start(*, sending: Sending) -> None:
    """Start this process's threads: when the server starts, after its recorder. Messages of alerts
    and weekly reports have one each, for a receiver that does not answer takes its time."""
    holder = recorder().name
    groups = (QUICK, _long(), (delivery(sending),), (_WEEKLY,), (_WHAT_IF, _DEMO))
    _threads.extend(JobThread(group, holder=holder) for group in groups)
    for thread in _threads:
        thread.start()


def stop(seconds: float) -> None:
    """Give back what this process holds; blocks for so long at most."""
    for thread in _threads:
        thread.stop(seconds / len(_threads))
    _threads.clear()


def _long() -> tuple[JobKind, ...]:
    return LONG if conf.env().retain_hour >= 0 else (_REBUILD, _SUGGEST)
