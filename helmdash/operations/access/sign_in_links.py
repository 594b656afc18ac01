"""One-time sign-in links: how the person who started the server gets to the first page."""

from __future__ import annotations

from datetime import datetime

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.db.models import QuerySet
from django.utils.encoding import force_str
from django.utils.http import urlsafe_base64_decode, urlsafe_base64_encode

from helmdash.operations.database.transactions import write


class _LinkTokens(PasswordResetTokenGenerator):
    """A token that dies with the first sign-in after it, since it hashes the latest one."""

    key_salt = "helmdash.sign-in-link"

    def _make_hash_value(self, user: User, timestamp: int) -> str:
        # Django leaves the microseconds of the latest sign-in out; then a link that is used in the
        # same second as an earlier sign-in would work twice.
        return f"{super()._make_hash_value(user, timestamp)}{user.last_login}"


_tokens = _LinkTokens()


def find_link_path(*, username: str) -> str | None:
    """The path of a link that signs this user in once, within a day; None: no such account."""
    users = get_user_model().objects.filter(username=username, is_active=True)
    return make_link_path(username=username) if users.exists() else None


def make_link_path(*, username: str) -> str:
    """Path of a one-time sign-in link for an account. Raises DoesNotExist where there is none."""
    user = get_user_model().objects.get(username=username)
    uid = urlsafe_base64_encode(str(user.pk).encode())
    return f"/login/link/{uid}/{_tokens.make_token(user)}/"


def has_signed_in(*, username: str) -> bool:
    """Whether this account was ever used; False also for one that does not exist."""
    found = get_user_model().objects.filter(username=username, last_login__isnull=False)
    return found.exists()


def find_link_user(*, uid: str, token: str) -> User | None:
    """The user a link belongs to; None when it was used, is too old or was never ours."""
    return _user_of(get_user_model().objects.all(), uid, token)


def use_link(*, uid: str, token: str, now: datetime) -> User | None:
    """The same, and the link is used up: of those who come with it at once, one gets an answer."""

    def work() -> User | None:
        user = _user_of(get_user_model().objects.select_for_update(), uid, token)
        if user is not None:
            user.last_login = now
            user.save(update_fields=["last_login"])
        return user

    return write(work)


def _user_of(users: QuerySet[User], uid: str, token: str) -> User | None:
    try:
        pk = int(force_str(urlsafe_base64_decode(uid)))
    except (ValueError, OverflowError):
        return None
    user = users.filter(pk=pk, is_active=True).first()
    return user if user is not None and _tokens.check_token(user, token) else None
