"""How pages look to somebody, by their account."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser


@dataclass(frozen=True, slots=True, kw_only=True)
class LookView:
    """theme: light or dark; zone: a name of the zone database. Empty: as the browser has it."""

    theme: str
    zone: str


def look_of(user: AbstractBaseUser | AnonymousUser) -> LookView | None:
    """What somebody chose for every browser; None: nothing yet, or they are not signed in. No query
    for the account of a session, which comes with it."""
    found = getattr(user, "look", None)
    return None if found is None else LookView(theme=found.theme, zone=found.zone)
