"""Passwords that people set themselves: known the old one, or by a link that was mailed to them."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import BoundedSemaphore
from typing import Final

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.contrib.auth.tokens import default_token_generator
from django.core.mail import send_mail
from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from helmdash.core.access.permissions import Person
from helmdash.operations.access.keys import AccessError
from helmdash.records import audit
from helmdash.records.models import OidcIdentity

_log = logging.getLogger(__name__)
# The brake of sign-in lets few through; a mail server that hangs holds no more than these.
_MOST_WAITING: Final = 20
_SUBJECT: Final = "A new password for HelmDash"
_TEXT: Final = """Somebody, most likely you, asked for a new password for the account {name}.

Set it here, within a day:
{link}

Without that nothing changes.
"""


def may_set_own(account: User) -> bool:
    """Whether somebody may choose a password. Not who has none because an identity provider vouches
    for them: it would let them in after that has locked them out."""
    return account.has_usable_password() or not OidcIdentity.objects.filter(user=account).exists()


def set_own_password(*, account: User, password: str) -> None:
    """Somebody chose a new password for their own account; its other sessions end with that.

    Raises AccessError where they may have none.
    """
    if not may_set_own(account):
        raise AccessError("password: the identity provider lets this account in, and it alone")
    with transaction.atomic():
        account.set_password(password)
        account.save(update_fields=["password"])
        audit.note(
            actor=Person(name=account.get_username()),
            project_id=None,
            kind="account",
            action="changed",
            subject=account.get_username(),
            changes=(("password", "set", "set anew"),),
        )


def mail_reset_link(*, name: str, base: str) -> None:
    """Mail a link to whoever is called so, or has this address, if there is one with an address.

    base: the address of this server, as people reach it. Sent by a thread: how long it takes tells
    nobody whether there was anything to send.
    """
    # Whom an identity provider vouches for comes in by it alone.
    vouched = Exists(OidcIdentity.objects.filter(user=OuterRef("pk")))
    users = get_user_model().objects.filter(~vouched, is_active=True).exclude(email="")
    for user in users.filter(Q(username=name) | Q(email__iexact=name)).order_by("pk")[:5]:
        uid = urlsafe_base64_encode(force_bytes(user.pk))
        link = f"{base}/login/reset/{uid}/{default_token_generator.make_token(user)}/"
        text = _TEXT.format(name=user.get_username(), link=link)
        if _places().acquire(blocking=False):
            _thread().submit(_send, text, user.email)
        else:
            _log.warning("a mail about a password was not sent: too many wait already")


def settle(seconds: float) -> None:
    """Wait until the mails that wait are sent, so long at most. Raises TimeoutError."""
    _thread().submit(lambda: None).result(seconds)


def _send(text: str, address: str) -> None:
    try:
        send_mail(_SUBJECT, text, None, [address])
    # smtplib's errors are OSErrors; a ValueError is an address or a name that no mail can be sent
    # with (a line break), which nobody would see in this thread.
    except (OSError, ValueError) as error:
        _log.warning("a mail about a password could not be sent: %s", type(error).__name__)
    finally:
        _places().release()


@cache
def _places() -> BoundedSemaphore:
    return BoundedSemaphore(_MOST_WAITING)


@cache
def _thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="mail")
