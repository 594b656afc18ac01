"""The connection to the mail server."""

from __future__ import annotations

import ssl
from functools import cached_property

from django.core.mail.backends import smtp


class EmailBackend(smtp.EmailBackend):
    """Django's, which trusts the same authorities under every Python."""

    @cached_property
    def ssl_context(self) -> ssl.SSLContext:
        """As ssl.create_default_context makes it up to Python 3.12; from 3.13 on that refuses
        authorities that a company made by openssl's defaults (VERIFY_X509_STRICT)."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_default_certs()
        return context
