"""Who may do what, from the tables alone."""

from __future__ import annotations

import pytest

from helmdash.core.access.permissions import (
    SHELL,
    Actor,
    Forbidden,
    KeyHolder,
    MemberRole,
    Person,
    Right,
    Scope,
    grantable,
    least_role,
    may,
    readable,
    require,
    require_grantable,
    scope_of,
)

OWN, OTHER = 1, 2
# Right -> the scope a key needs, the least role of a person.
TABLE: dict[Right, tuple[str | None, str | None]] = {
    Right.READ: ("read", "viewer"),
    Right.READ_BUDGETS: (None, "viewer"),
    Right.RECORD: ("record", "editor"),
    Right.CARE: ("record", "editor"),
    Right.GIVE_FEEDBACK: ("record", "editor"),
    Right.TRIAGE: ("record", "editor"),
    Right.SHARE_VIEWS: ("admin", "editor"),
    Right.FIT: ("fit", "editor"),
    Right.PLAN: ("plan", "editor"),
    Right.CHANGE_BUDGETS: ("budgets", "editor"),
    Right.DECIDE_SUGGESTIONS: ("budgets", "owner"),
    Right.CHANGE_CATALOGS: ("admin", "owner"),
    Right.CHANGE_SETTINGS: ("admin", "owner"),
    Right.MANAGE_UPSTREAMS: ("admin", "owner"),
    Right.MANAGE_KEYS: ("admin", "owner"),
    Right.MANAGE_MEMBERS: ("admin", "owner"),
    Right.READ_AUDIT: ("admin", "owner"),
    Right.ERASE: ("admin", "owner"),
    Right.MANAGE_DEMO: ("admin", "owner"),
    Right.ADMINISTER: ("admin", None),
}


def key(*scopes: str, is_of_default: bool = False) -> KeyHolder:
    return KeyHolder(
        name="k", scopes=frozenset(scopes), project_id=OWN, is_of_default=is_of_default
    )


def person(role: str | None) -> Person:
    return Person(name="p", roles={OWN: MemberRole(role)} if role else {})


def test_each_right_has_its_scope_and_its_role() -> None:
    assert {right: (scope_of(right), least_role(right)) for right in Right} == TABLE


@pytest.mark.parametrize("right", Right)
def test_a_key_has_the_rights_of_its_scope_in_its_project_and_nowhere_else(right: Right) -> None:
    needed = TABLE[right][0]
    for scope in Scope:
        expected = right is not Right.ADMINISTER and (needed in (None, scope) or scope == "admin")

        assert may(key(scope), right, project_id=OWN) is expected
        assert not may(key(scope), right, project_id=OTHER)


@pytest.mark.parametrize("right", Right)
def test_what_concerns_every_project_takes_an_admin_key_of_the_default_project(
    right: Right,
) -> None:
    for scope in Scope:
        assert not may(key(scope), right, project_id=None)
        allowed = may(key(scope, is_of_default=True), right, project_id=None)
        assert allowed is (scope == "admin")


@pytest.mark.parametrize("right", Right)
def test_a_person_has_the_rights_of_their_role_and_of_lesser_ones(right: Right) -> None:
    needed = TABLE[right][1]
    for rank, role in enumerate(MemberRole):
        expected = needed is not None and rank >= list(MemberRole).index(MemberRole(needed))

        assert may(person(role), right, project_id=OWN) is expected
        assert not may(person(role), right, project_id=OTHER)
        assert not may(person(role), right, project_id=None)
    assert not may(person(None), right, project_id=OWN)
    for everywhere in (Person(name="root", is_superuser=True), SHELL):
        assert may(everywhere, right, project_id=OWN)
        assert may(everywhere, right, project_id=None)


@pytest.mark.parametrize(
    ("actor", "is_default", "expected"),
    [
        (person("viewer"), False, set()),
        (person("editor"), False, set()),
        (person("owner"), False, set(Scope)),
        # An admin key of the default project changes what concerns every project.
        (person("owner"), True, set(Scope) - {Scope.ADMIN}),
        (Person(name="root", is_superuser=True), True, set(Scope)),
        (SHELL, True, set(Scope)),
        (key("admin"), False, set(Scope)),
        (key("admin", is_of_default=True), True, set(Scope)),
        (key("budgets", "read", "record", "fit", "plan"), False, set()),
    ],
)
def test_nobody_gives_a_scope_that_they_do_not_hold(
    actor: Actor, is_default: bool, expected: set[Scope]
) -> None:
    assert set(grantable(actor, project_id=OWN, is_default=is_default)) == expected
    assert expected == set(Scope) or not may_grant(actor, "admin", is_default)
    if not isinstance(actor, Person) or not actor.is_superuser:
        assert actor is SHELL or not grantable(actor, project_id=OTHER, is_default=False)


def may_grant(actor: Actor, scope: str, is_default: bool) -> bool:
    try:
        require_grantable(actor, frozenset({scope}), project_id=OWN, is_default=is_default)
    except Forbidden:
        return False
    return True


def test_what_is_forbidden_says_what_it_takes() -> None:
    with pytest.raises(Forbidden, match="lacks the scope budgets") as of_key:
        require(key("read"), Right.CHANGE_BUDGETS, project_id=OWN)
    with pytest.raises(Forbidden, match="default project with the scope admin"):
        require(key("admin"), Right.CHANGE_BUDGETS, project_id=None)
    with pytest.raises(Forbidden, match="another project"):
        require(key("admin"), Right.CHANGE_BUDGETS, project_id=OTHER)
    with pytest.raises(Forbidden, match="the role owner"):
        require(person("editor"), Right.MANAGE_KEYS, project_id=OWN)
    with pytest.raises(Forbidden, match="Only a superuser"):
        require(person("owner"), Right.CHANGE_BUDGETS, project_id=None)

    assert of_key.value.scope is Scope.BUDGETS


def test_projects_are_read_by_their_members() -> None:
    assert readable(person(None)) == frozenset()
    assert readable(person("viewer")) == frozenset({OWN})
    assert readable(key("read")) == frozenset({OWN})
    assert readable(key("record")) == frozenset()
    assert readable(SHELL) is readable(Person(name="root", is_superuser=True)) is None
