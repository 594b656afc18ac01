"""Members: who is in the project, with which role; owners add, change and remove them."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.views.decorators.http import require_safe

from helmdash import conf
from helmdash.core.access.permissions import Right
from helmdash.operations.access import members, sign_in_links
from helmdash.operations.access.keys import AccessError
from helmdash.pages import scope
from helmdash.pages.forms.forms import MemberForm
from helmdash.pages.guards import post_only, takes
from helmdash.pages.render import PageRequest, show
from helmdash.queries.access import access


@require_safe
def member_page(request: PageRequest) -> HttpResponse:
    """The members of the project, and who may do everything anyway."""
    return _show(request, MemberForm())


@post_only("members")
@takes(Right.MANAGE_MEMBERS)
def change_members(request: PageRequest) -> HttpResponse:
    """Give somebody a role, or end their part. A new account's sign-in link is shown only in the
    answer."""
    form = MemberForm(request.POST)
    if not form.is_valid():
        return _show(request, form, status=422)
    user, role = form.cleaned_data["user"], form.cleaned_data["role"]
    actor, project = scope.current_actor(request), scope.current_project(request).slug
    try:
        if form.cleaned_data["do"] == "remove":
            members.remove_member(actor=actor, user=user, project=project)
            messages.success(request, f"{user} is no member any more.")
        elif members.set_member(actor=actor, user=user, project=project, role=role):
            response = _show(request, MemberForm(), made=user)
            response["Cache-Control"] = "no-store"
            return response
        else:
            messages.success(request, f"{user} is {role.value} now.")
    except members.NoAccount as error:
        form.add_error("user", str(error).removeprefix("user: "))
        return _show(request, form, status=422)
    except AccessError as error:
        messages.error(request, str(error))
    return HttpResponseRedirect(request.page)


def _show(
    request: PageRequest, form: MemberForm, *, made: str | None = None, status: int = 200
) -> HttpResponse:
    request.now = timezone.now()
    project = scope.current_project(request)
    link = sign_in_links.make_link_path(username=made) if made else ""
    address = conf.env().public_url or request.build_absolute_uri("/")
    context = {
        "form": form,
        "members": access.members(project=project.slug),
        "superusers": access.superusers(),
        "made": made,
        "link": f"{address.rstrip('/')}{link}" if link else "",
    }
    return show(request, "pages/members.html", context, status=status)
