"""Accounts of people whom an identity provider vouches for, and their roles by its word."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User

from helmdash.core.access.oidc_roles import RoleRule, roles_of
from helmdash.core.access.permissions import MemberRole
from helmdash.operations.access.keys import AccessError
from helmdash.operations.database.transactions import write
from helmdash.records import audit
from helmdash.records.access.rights import keeps_an_owner
from helmdash.records.models import Membership, OidcIdentity, Project
from helmdash.records.statements.column_values import storable

_log = logging.getLogger(__name__)
# As the audit log and histories name it.
_ACTOR: Final = "the identity provider"
# Of a user name, as Django has it; less what a number behind it takes.
_NAME_CHARS: Final = 140
_MOST_ALIKE: Final = 1_000


def account_of(
    *, issuer: str, claims: Mapping[str, Any], claim: str, rules: tuple[RoleRule, ...]
) -> User:
    """The account of whoever an ID token is about, with its roles brought up to date.

    Known by issuer and subject alone. At first, the account whose e-mail address a superuser has
    entered and the provider has verified becomes theirs, else one is made, without a password. In
    projects that rules name they have the role of the rules and no other; a project's last owner
    stays. Raises AccessError where the account is locked or the claims name nobody.
    """
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= 255 or storable(subject) != subject:
        raise AccessError("user: the provider names no subject")
    claims = storable(claims)

    def work() -> User:
        found = OidcIdentity.objects.select_related("user").filter(issuer=issuer, subject=subject)
        known = found.first()
        account = known.user if known else _first_time(issuer, subject, claims)
        if not account.is_active:
            raise AccessError(f"user: the account {account} is locked")
        for slug, role in roles_of(rules, claims.get(claim)).items():
            _set_role(account, slug, role)
        return account

    return write(work)


def _first_time(issuer: str, subject: str, claims: Mapping[str, Any]) -> User:
    account = _by_address(claims) or _new_account(claims)
    OidcIdentity.objects.create(user=account, issuer=issuer, subject=subject)
    return account


def _by_address(claims: Mapping[str, Any]) -> User | None:
    """Only an address that a superuser here and the provider stand for, and one account has."""
    address = claims.get("email")
    if not isinstance(address, str) or not address or claims.get("email_verified") is not True:
        return None
    found = list(get_user_model().objects.filter(email__iexact=address)[:2])
    if len(found) != 1 or OidcIdentity.objects.filter(user=found[0]).exists():
        return None
    # PostgreSQL has one capital for several letters, and their addresses are of several people.
    is_same = found[0].email == address or (found[0].email + address).isascii()
    return found[0] if is_same else None


def _new_account(claims: Mapping[str, Any]) -> User:
    users = get_user_model()
    said = claims.get("preferred_username") or claims.get("email") or claims["sub"]
    wanted = _plain(str(said)) or "somebody"
    names = [wanted, *(f"{wanted}-{number}" for number in range(2, _MOST_ALIKE))]
    taken = set(
        users.objects.filter(username__istartswith=wanted).values_list("username", flat=True)
    )
    lower = {name.lower() for name in taken}
    account = users(username=next(name for name in names if name.lower() not in lower))
    account.set_unusable_password()
    account.save()
    audit.note_row(actor=_ACTOR, row=account, before=None)
    return account


def _plain(name: str) -> str:
    """What a user name may hold of it."""
    kept = "".join(sign if sign.isalnum() or sign in "@.+-_" else "-" for sign in name)
    return kept[:_NAME_CHARS].strip("-")


def _set_role(account: User, slug: str, role: MemberRole | None) -> None:
    project = Project.objects.select_for_update().filter(slug=slug).first()
    if project is None:
        _log.warning("HELMDASH_OIDC_ROLES names the project %s, which does not exist", slug)
        return
    row = Membership.objects.filter(project=project, user=account).first()
    is_leaving = row is not None and role is not MemberRole.OWNER
    if row is not None and is_leaving and not keeps_an_owner(project.pk, without={row.pk}):
        _log.warning("%s stays the owner of %s: there is no other", account, slug)
        return
    before = audit.values_of(row) if row is not None else None
    if row is not None and role is None:
        row._change_reason = f"by {_ACTOR}"  # type: ignore[attr-defined]
        audit.note_row(actor=_ACTOR, row=row, before=before or {}, is_gone=True)
        row.delete()
    elif role is not None and (row is None or row.role != role.value):
        row = row or Membership(project=project, user=account)
        row.role = role.value
        row._change_reason = f"by {_ACTOR}"  # type: ignore[attr-defined]
        row.save()
        audit.note_row(actor=_ACTOR, row=row, before=before)
