"""Alerts: rules, channels, what fires, what became of messages; and the link in a message."""

from __future__ import annotations

from datetime import datetime

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_safe

from helmdash import conf
from helmdash.core.access.permissions import Right
from helmdash.core.alerts import channels as core_channels
from helmdash.core.alerts import rules as core_rules
from helmdash.core.alerts.channels import ChannelKind
from helmdash.core.alerts.rules import RuleKind
from helmdash.core.text.counts import count_of
from helmdash.operations.alerts import acknowledging, editing
from helmdash.operations.alerts.editing import AlertProblem, SavedChannel
from helmdash.pages import scope
from helmdash.pages.forms.alert_forms import ChannelForm, RuleForm
from helmdash.pages.guards import post_only, takes
from helmdash.pages.parts.alert_needs import missing_settings
from helmdash.pages.render import PageRequest, show
from helmdash.queries.alerts import log, previewing
from helmdash.queries.alerts import rules as stored
from helmdash.queries.alerts.previewing import Previewed
from helmdash.queries.alerts.rules import ChannelInfo, RuleInfo


@require_safe
def alert_page(request: PageRequest) -> HttpResponse:
    """Rules and channels of the project, without secrets, what fires, and the newest messages."""
    return _show(request)


def _show(
    request: PageRequest, *, saved: SavedChannel | None = None, status: int = 200
) -> HttpResponse:
    request.now = timezone.now()
    project = scope.current_project(request)
    found = stored.channels(project_id=project.id)
    names = {each.id: each.name for each in found}
    rules = [
        (
            rule,
            core_rules.KINDS[rule.settings.kind],
            [names[pk] for pk in rule.channels if pk in names],
        )
        for rule in stored.rules(project_id=project.id)
    ]
    firing = log.firing(project_id=project.id)
    context = {
        "rules": rules,
        "channels": [(each, core_channels.KINDS[each.kind]) for each in found],
        "firing": firing,
        # One may have gone or come between the two queries.
        "all_firing": max(sum(rule.firing for rule, _, _ in rules), len(firing)),
        "deliveries": log.deliveries(project_id=project.id),
        "rule_kinds": [(kind.value, row) for kind, row in core_rules.KINDS.items()],
        "channel_kinds": [
            (kind.value, row)
            for kind, row in core_channels.KINDS.items()
            if kind is not ChannelKind.APPRISE or conf.apprise_urls()
        ],
        "saved": saved,
        "missing_settings": missing_settings({each.kind for each in found}),
    }
    return show(request, "pages/alerts.html", context, status=status)


# --- rules


@require_safe
@takes(Right.CHANGE_SETTINGS)
def rule_page(request: PageRequest) -> HttpResponse:
    """The form of one rule (?id=), or of a new one of a kind (?kind=)."""
    rule = _find_rule(request, request.GET.get("id", ""))
    kind = rule.settings.kind if rule else _kind(request.GET.get("kind", ""))
    values = RuleForm.values_of(rule) if rule else RuleForm.values_for(kind)
    return _show_rule(request, RuleForm(initial=values), kind, rule)


@post_only("alert-rule")
@takes(Right.CHANGE_SETTINGS)
def save_rule(request: PageRequest) -> HttpResponse:
    """Store a rule, or the usual ones, delete it, or show what it would have said last week
    (`do`)."""
    scoped = scope.read(request)
    now = timezone.now()
    if request.POST.get("do") == "usual":
        return _add_usual(request, now)
    do, rule = request.POST.get("do", ""), _find_rule(request, request.POST.get("id", ""))
    if do == "delete" and rule:
        editing.delete_rule(
            actor=scoped.actor, project_id=scoped.project.id, rule_id=rule.id, now=now
        )
        messages.success(request, f"The rule {rule.name} is deleted.")
        return HttpResponseRedirect(reverse("alerts"))
    form = RuleForm(request.POST).offer(stored.channels(project_id=scoped.project.id))
    kind = _kind(request.POST.get("kind", ""))
    if not form.is_valid():
        return _show_rule(request, form, kind, rule, status=422)
    try:
        if do == "preview":
            settings = editing.rule_settings(form.edit())
            found = previewing.last_week(project_id=scoped.project.id, settings=settings, now=now)
            return _show_rule(request, form, kind, rule, previewed=found)
        editing.save_rule(
            actor=scoped.actor,
            project_id=scoped.project.id,
            edit=form.edit(),
            rule_id=rule.id if rule else None,
            now=now,
        )
    except AlertProblem as problem:
        _blame(form, problem)
        return _show_rule(request, form, kind, rule, status=422)
    messages.success(request, f"The rule {form.cleaned_data['name']} is saved.")
    return HttpResponseRedirect(reverse("alerts"))


def _add_usual(request: PageRequest, now: datetime) -> HttpResponse:
    scoped = scope.read(request)
    try:
        added = editing.add_usual_rules(actor=scoped.actor, project_id=scoped.project.id, now=now)
    except AlertProblem as problem:
        messages.error(request, str(problem))
    else:
        messages.success(request, f"{count_of(added, 'rule')} added. Each can be changed below.")
    return HttpResponseRedirect(reverse("alerts"))


def _show_rule(
    request: PageRequest,
    form: RuleForm,
    kind: RuleKind,
    rule: RuleInfo | None,
    *,
    previewed: Previewed | None = None,
    status: int = 200,
) -> HttpResponse:
    request.now = timezone.now()
    found = stored.channels(project_id=scope.current_project(request).id)
    context = {
        "form": form.offer(found),
        "kind": core_rules.KINDS[kind],
        "rule": rule,
        "channels": found,
        "ticked": {str(each) for each in form["channels"].value() or ()},
        "previewed": previewed,
    }
    return show(request, "pages/alert_rule.html", context, status=status)


def _find_rule(request: PageRequest, number: str) -> RuleInfo | None:
    """The rule of this number; None for none. Raises Http404 for one that does not exist."""
    if not number:
        return None
    pk = _number(number)
    found = stored.find_rule(project_id=scope.current_project(request).id, rule_id=pk)
    if found is None:
        raise Http404("There is no such rule (any more).")
    return found


def _kind(word: str) -> RuleKind:
    return RuleKind(word) if word in {each.value for each in RuleKind} else RuleKind.LEVEL


# --- channels


@require_safe
@takes(Right.CHANGE_SETTINGS)
def channel_page(request: PageRequest) -> HttpResponse:
    """The form of one channel (?id=), or of a new one of a kind (?kind=)."""
    channel = _find_channel(request, request.GET.get("id", ""))
    kind = channel.kind if channel else _channel_kind(request.GET.get("kind", ""))
    values = ChannelForm.values_of(channel) if channel else {"kind": kind, "enabled": True}
    return _show_channel(request, ChannelForm(initial=values).named(kind), kind, channel)


@post_only("alert-channel")
@takes(Right.CHANGE_SETTINGS)
def save_channel(request: PageRequest) -> HttpResponse:
    """Store a channel, delete it, or have a test message sent by it (`do`)."""
    scoped = scope.read(request)
    do, channel = request.POST.get("do", ""), _find_channel(request, request.POST.get("id", ""))
    actor, project_id = scoped.actor, scoped.project.id
    if do == "delete" and channel:
        editing.delete_channel(
            actor=actor, project_id=project_id, channel_id=channel.id, now=timezone.now()
        )
        messages.success(request, f"The channel {channel.name} is deleted.")
        return HttpResponseRedirect(reverse("alerts"))
    if do == "test" and channel:
        _test(request, channel)
        return HttpResponseRedirect(reverse("alerts") + "#log")
    kind = channel.kind if channel else _channel_kind(request.POST.get("kind", ""))
    form = ChannelForm(request.POST).named(kind)
    if not form.is_valid():
        return _show_channel(request, form, kind, channel, status=422)
    try:
        saved = editing.save_channel(
            actor=actor,
            project_id=project_id,
            edit=form.edit(),
            channel_id=channel.id if channel else None,
            now=timezone.now(),
        )
    except AlertProblem as problem:
        _blame(form, problem)
        return _show_channel(request, form, kind, channel, status=422)
    if saved.made_secret:
        response = _show(request, saved=saved)
        response["Cache-Control"] = "no-store"
        return response
    messages.success(request, f"The channel {form.cleaned_data['name']} is saved.")
    return HttpResponseRedirect(reverse("alerts"))


def _test(request: PageRequest, channel: ChannelInfo) -> None:
    scoped = scope.read(request)
    is_made = editing.send_test(
        actor=scoped.actor,
        project_id=scoped.project.id,
        channel_id=channel.id,
        now=timezone.now(),
    )
    if is_made:
        messages.success(request, "A test is on its way: the log below says what came of it.")
    else:
        messages.error(request, "channel: it is switched off. Switch it on to test it.")


def _show_channel(
    request: PageRequest,
    form: ChannelForm,
    kind: ChannelKind,
    channel: ChannelInfo | None,
    *,
    status: int = 200,
) -> HttpResponse:
    request.now = timezone.now()
    row = core_channels.KINDS[kind]
    if kind is ChannelKind.APPRISE:
        form.offer(conf.apprise_urls(), is_new=channel is None)
    context = {
        "form": form,
        "kind": row,
        "kind_word": kind.value,
        "channel": channel,
        "missing_settings": missing_settings({kind}),
    }
    return show(request, "pages/alert_channel.html", context, status=status)


def _find_channel(request: PageRequest, number: str) -> ChannelInfo | None:
    """The channel of this number; None for none. Raises Http404 for one that does not exist."""
    if not number:
        return None
    pk = _number(number)
    for each in stored.channels(project_id=scope.current_project(request).id):
        if each.id == pk:
            return each
    raise Http404("There is no such channel (any more).")


def _channel_kind(word: str) -> ChannelKind:
    is_known = word in {each.value for each in ChannelKind}
    return ChannelKind(word) if is_known else ChannelKind.WEBHOOK


def _number(text: str) -> int:
    """Raises Http404 for what is no number of a row."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 18):
        raise Http404("There is nothing by this number.")
    return int(text)


def _blame(form: forms.Form, problem: AlertProblem) -> None:
    for field, said in problem.errors.items():
        form.add_error(field if field in form.fields else None, said)


# --- the link in a message


# The signed link is what lets them: the front reads no body of people nobody knows, so a token of
# the form would never arrive (doors.front).
@csrf_exempt
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def acknowledge(request: HttpRequest, token: str) -> HttpResponse:
    """Whoever has the message says here that they see to it. Nobody has to be signed in.

    Only the form does it: programs that look at links in messages send a GET.
    """
    found = acknowledging.find(token)
    if found is None:
        return render(request, "pages/acknowledge.html", {"found": None}, status=410)
    is_done = False
    if request.method == "POST":
        by = request.user.get_username() if request.user.is_authenticated else acknowledging.BY_LINK
        is_done = acknowledging.acknowledge(token, by=by, now=timezone.now())
    return render(request, "pages/acknowledge.html", {"found": found, "is_done": is_done})
