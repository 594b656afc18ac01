"""Which project a page is about.

`?project=<slug>` says it, in every address that a page holds (helmdash.pages.addresses); so tabs
with different projects stay apart. For an address without it the session remembers the newest that
was named; without a choice it is the default project once it has a call, else the demo project if
there is one, else the default. A form writes into the project that its own page shows (its address,
or its hidden field `project`), whatever another tab chose. Only projects that the person may read
are there at all: others are as if they did not exist.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.encoding import escape_uri_path

from helmdash.core.access.permissions import Forbidden, Person, Right, may, readable
from helmdash.queries.access import access
from helmdash.queries.access.access import ProjectInfo
from helmdash.queries.access.project_lookup import Kind, find_project_of
from helmdash.queries.calls import calls

_SESSION_KEY = "project"
FORM_FIELD = "project"
_NOT_A_MEMBER = (
    "You are signed in, but are a member of no project. "
    "An owner of one, or an administrator, can add you."
)


class ProjectGone(Exception):
    """A form was sent from a page about a project that is not there any more."""

    def __init__(self, slug: str) -> None:
        super().__init__(f"project: there is no project called {slug} any more")
        self.slug = slug


@dataclass(frozen=True, slots=True, kw_only=True)
class PageScope:
    """The project in force, those to choose from, and whether a call was ever recorded in it."""

    actor: Person
    project: ProjectInfo
    projects: tuple[ProjectInfo, ...]
    has_calls: bool

    @property
    def home(self) -> ProjectInfo:
        """The way back from demo data: the default project, or the first that there is."""
        return next((each for each in self.projects if not each.is_demo), self.projects[0])

    @property
    def may(self) -> frozenset[Right]:
        """What the person may do in the project in force; templates look here."""
        return frozenset(
            right for right in Right if may(self.actor, right, project_id=self.project.id)
        )

    @property
    def may_administer(self) -> bool:
        """What concerns every project, such as what servers do by themselves."""
        return may(self.actor, Right.ADMINISTER, project_id=None)

    @property
    def may_manage_demo(self) -> bool:
        """Demo data is loaded and removed by whoever runs the default project."""
        default = next((each.id for each in self.projects if each.is_default), None)
        return may(self.actor, Right.MANAGE_DEMO, project_id=default)


def current_project(request: HttpRequest) -> ProjectInfo:
    """The project this request is about. Raises what `read` raises."""
    return read(request).project


def current_actor(request: HttpRequest) -> Person:
    """Who asks, with their roles."""
    return access.person_of(request.user)


def read(request: HttpRequest) -> PageScope:
    """The scope of a request, worked out once: two queries, three while only demo data is there,
    and one more for whoever is no superuser.

    Raises Http404 when it asks for a project that is not there, ProjectGone when it is a form of a
    page about one, and Forbidden for a person who is a member of none.
    """
    known = _known(request)
    return known if known is not None else _remember(request, _read(request))


def find_around_error(request: HttpRequest) -> PageScope | None:
    """The scope that a page about a fault is shown in, whatever project was asked for; None for who
    is not signed in or is a member of none."""
    known = _known(request)
    if known is not None or not request.user.is_authenticated:
        return known
    actor = current_actor(request)
    projects = access.projects_of(actor=actor)
    return _remember(request, _undecided(actor, projects)) if projects else None


def shown(request: HttpRequest) -> str | None:
    """The project of a request's answer; None where it is about none."""
    known = _known(request)
    return known.project.slug if known is not None else None


def elsewhere(request: HttpRequest, kind: Kind, name: str) -> HttpResponse:
    """What to answer when the project in force has no such thing: the way to one that does.

    An address that was typed, or comes from a report, names no project and may be about another
    than the newest. Raises Http404 when none has it, or the address named its project itself.
    """
    project = current_project(request)
    if "project" not in request.GET:
        among = readable(current_actor(request))
        slug = find_project_of(kind=kind, name=name, besides=project.id, among=among)
        if slug is not None:
            # Quoted: the name may hold a `?`.
            return redirect(f"{escape_uri_path(request.path)}?project={slug}")
    raise Http404(f"There is no {kind} {name} in {project.name}.")


def forget(request: HttpRequest) -> None:
    """Drop the remembered choice: its project is gone, and the default shall rule again."""
    request.session.pop(_SESSION_KEY, None)
    actor = current_actor(request)
    _remember(request, _undecided(actor, access.projects_of(actor=actor)))


def lead_to(request: HttpRequest, slug: str) -> None:
    """Show another project next."""
    choose(request, slug)
    actor = current_actor(request)
    projects = access.projects_of(actor=actor)
    for found in projects:
        if found.slug == slug:
            _remember(request, _of(actor, found, projects))


def choose(request: HttpRequest, slug: str) -> None:
    """Remember a choice for the pages to come."""
    if request.session.get(_SESSION_KEY) != slug:
        request.session[_SESSION_KEY] = slug


def _read(request: HttpRequest) -> PageScope:
    actor = current_actor(request)
    projects = access.projects_of(actor=actor)
    if not projects:
        raise Forbidden(_NOT_A_MEMBER, right=Right.READ, project_id=None)
    by_slug = {project.slug: project for project in projects}
    asked = request.GET.get("project")
    if asked is not None:
        if asked not in by_slug:
            if request.method == "POST":
                raise ProjectGone(asked)
            raise Http404(f"project: there is no project called {asked}")
        # A poll of an older tab must not pull the others over to its project.
        if "HX-Request" not in request.headers:
            choose(request, asked)
    chosen = by_slug.get(asked or request.session.get(_SESSION_KEY, ""))
    found = _of(actor, chosen, projects) if chosen is not None else _undecided(actor, projects)
    of_form = request.POST.get(FORM_FIELD) if request.method == "POST" else None
    if not of_form or of_form == found.project.slug:
        return found
    if of_form not in by_slug:
        raise ProjectGone(of_form)
    # Who acts on a page wants to see next what came of it.
    choose(request, of_form)
    return _of(actor, by_slug[of_form], projects)


def _known(request: HttpRequest) -> PageScope | None:
    return getattr(request, "_helmdash_scope", None)


def _remember(request: HttpRequest, scope: PageScope) -> PageScope:
    request._helmdash_scope = scope  # type: ignore[attr-defined]
    return scope


def _of(actor: Person, project: ProjectInfo, projects: tuple[ProjectInfo, ...]) -> PageScope:
    return PageScope(actor=actor, project=project, projects=projects, has_calls=_has_calls(project))


def _undecided(actor: Person, projects: tuple[ProjectInfo, ...]) -> PageScope:
    # The default project comes first, where the person may read it.
    first = projects[0]
    if _has_calls(first):
        return PageScope(actor=actor, project=first, projects=projects, has_calls=True)
    demo = next((project for project in projects if project.is_demo), None)
    if demo is not None and _has_calls(demo):
        return PageScope(actor=actor, project=demo, projects=projects, has_calls=True)
    return PageScope(actor=actor, project=first, projects=projects, has_calls=False)


def _has_calls(project: ProjectInfo) -> bool:
    return calls.newest_mark(project_id=project.id) > 0
