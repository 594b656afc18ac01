"""What somebody makes of a suggestion, from the budgets page."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone

from helmdash.core.access.permissions import Right
from helmdash.operations.budgets.editing import BudgetProblems, NoSuchBudget
from helmdash.operations.budgets.reverting import NoSuchEdit
from helmdash.operations.evidence import deciding, trialling
from helmdash.operations.evidence.deciding import NoSuchSuggestion, SuggestionDecided
from helmdash.operations.evidence.trialling import TrialConflict
from helmdash.pages import scope
from helmdash.pages.forms.forms import SuggestionForm
from helmdash.pages.guards import takes
from helmdash.pages.render import PageRequest


@takes(Right.DECIDE_SUGGESTIONS)
def decide_suggestion(request: PageRequest, number: int) -> HttpResponse:
    """Accept, dismiss or try a suggestion, or take back what accepting it did.

    Raises Http404 for one that does not exist.
    """
    back = f"{reverse('budgets')}?project={scope.read(request).project.slug}#suggestions"
    if request.method != "POST":
        return HttpResponseRedirect(back)
    form = SuggestionForm(request.POST)
    if form.is_valid():
        _decide(request, number, form)
    else:
        messages.error(request, "; ".join(form.problems))
    return HttpResponseRedirect(back)


def _decide(request: PageRequest, number: int, form: SuggestionForm) -> None:
    scoped = scope.read(request)
    try:
        if form.cleaned_data["do"] == "dismiss":
            deciding.dismiss(
                actor=scoped.actor,
                project_id=scoped.project.id,
                suggestion_id=number,
                reason=form.cleaned_data["reason"],
                now=timezone.now(),
            )
            messages.success(request, "Dismissed: it comes back only as another suggestion.")
        elif form.cleaned_data["do"] == "trial":
            _begin_trial(request, number, form)
        elif form.cleaned_data["do"] == "revert":
            _revert(request, number)
        else:
            found = deciding.accept(
                actor=scoped.actor,
                project_id=scoped.project.id,
                suggestion_id=number,
                now=timezone.now(),
            )
            messages.success(
                request,
                f"Saved the budget of {found.model} for this project; its evidence says why.",
            )
    except NoSuchSuggestion as error:
        raise Http404(str(error)) from None
    except (SuggestionDecided, TrialConflict, NoSuchBudget, NoSuchEdit) as error:
        messages.error(request, str(error))
    except BudgetProblems as error:
        told = "; ".join(each.message for each in error.errors)
        messages.error(request, f"The budget cannot be edited so: {told}")


def _revert(request: PageRequest, number: int) -> None:
    scoped = scope.read(request)
    found = deciding.revert(
        actor=scoped.actor,
        project_id=scoped.project.id,
        suggestion_id=number,
        now=timezone.now(),
    )
    messages.success(request, f"Reverted: the budget of {found.model} is as it was before.")


def _begin_trial(request: PageRequest, number: int, form: SuggestionForm) -> None:
    scoped = scope.read(request)
    given = form.cleaned_data
    found = trialling.begin(
        actor=scoped.actor,
        project_id=scoped.project.id,
        suggestion_id=number,
        share=given["share"] / 100 if given["share"] else trialling.DEFAULT_SHARE,
        conversations=given["conversations"],
        days=given["days"],
        now=timezone.now(),
    )
    share = found.trial.share if found.trial else 0
    messages.success(
        request,
        f"On trial: {share:.0%} of the conversations of {found.model} have the suggested budget "
        "from now on.",
    )
