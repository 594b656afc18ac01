"""The connection to the mail server."""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final

from django.core.mail.backends import smtp

# From the end of a mail's text to the server's word on it. RFC 5321 (4.5.3.2.6) has ten minutes:
# servers look for spam then, Exchange holds its answer for 30 s by itself. Whoever leaves too early
# sends a mail again that was taken.
_TAKEN_SECONDS: Final = 40.0


class SomeRefused(smtplib.SMTPException):
    """The server took the mail, but not for all of its recipients."""

    def __init__(self, codes: Sequence[int], *, recipients: int) -> None:
        """codes: the server's, for those that it refused. Their addresses are a secret."""
        told = ", ".join(str(code) for code in sorted(set(codes)))
        super().__init__(f"the mail server refused {len(codes)} of {recipients} addresses ({told})")


class EmailBackend(smtp.EmailBackend):
    """Django's, which waits for the server's word on a mail, says for whom it refused one
    (SomeRefused), and trusts the same authorities under every Python."""

    @property
    def connection_class(self) -> type[smtplib.SMTP]:
        """What speaks with the server."""
        return _TlsTalk if self.use_ssl else _Talk

    @cached_property
    def ssl_context(self) -> ssl.SSLContext:
        """As ssl.create_default_context makes it up to Python 3.12; from 3.13 on that refuses
        authorities that a company made by openssl's defaults (VERIFY_X509_STRICT)."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_default_certs()
        return context


class _Talk(smtplib.SMTP):
    def sendmail(
        self, from_addr: str, to_addrs: Any, *args: Any, **more: Any
    ) -> dict[str, tuple[int, bytes]]:
        """Raises SomeRefused where the mail is on its way to some alone; what the base class raises
        where it is to none."""
        refused = super().sendmail(from_addr, to_addrs, *args, **more)
        if refused:
            codes = [code for code, _ in refused.values()]
            raise SomeRefused(codes, recipients=len(to_addrs))
        return refused

    def data(self, msg: Any) -> tuple[int, bytes]:
        """Give the mail's text, and wait for longer than for any other answer."""
        assert self.sock is not None
        self.sock.settimeout(_TAKEN_SECONDS)
        try:
            return super().data(msg)
        finally:
            # None: it was closed meanwhile.
            if self.sock is not None:
                self.sock.settimeout(self.timeout)


class _TlsTalk(_Talk, smtplib.SMTP_SSL):
    pass
