"""The list of published figures, switched on and off from the budgets page."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse

from helmdash.core.access.permissions import Right
from helmdash.operations.budgets.editing import BudgetProblems, NoSuchBudget
from helmdash.operations.budgets.published import use_published_list
from helmdash.pages import scope
from helmdash.pages.guards import takes
from helmdash.pages.render import PageRequest

_SAID = {
    True: "Windows and prices that no row knows are those of the list from now on. "
    "What is recorded keeps its level.",
    False: "The list is not used any more: what no row knows is unknown again.",
}


@takes(Right.CHANGE_BUDGETS)
def switch_published_list(request: PageRequest) -> HttpResponse:
    """Use the list in this project, or stop it: `do` is on or off."""
    scoped = scope.read(request)
    back = f"{reverse('budgets')}?project={scoped.project.slug}#published"
    wanted = {"on": True, "off": False}.get(request.POST.get("do", ""))
    if request.method != "POST" or wanted is None:
        return HttpResponseRedirect(back)
    try:
        use_published_list(actor=scoped.actor, project_id=scoped.project.id, is_used=wanted)
    except NoSuchBudget as error:
        messages.error(request, str(error))
    except BudgetProblems as error:
        told = "; ".join(each.message for each in error.errors)
        messages.error(request, f"The fallback row cannot be edited so: {told}")
    else:
        messages.success(request, _SAID[wanted])
    return HttpResponseRedirect(back)
