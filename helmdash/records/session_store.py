"""Sessions of the pages in Django's table, looked up only by keys that it could have made."""

from __future__ import annotations

import re
from typing import Final

from django.contrib.sessions.backends import db

# As `_get_new_session_key` of Django makes them.
_KEY: Final = re.compile(r"[a-z0-9]{32}")


class SessionStore(db.SessionStore):
    """Django's, which would ask the database for any cookie of 8 characters and more.

    A quoted cookie may spell a NUL, and PostgreSQL refuses the question: whoever sent it had an
    error of the server from every address.
    """

    def _validate_session_key(self, key: str | None) -> bool:
        return key is not None and _KEY.fullmatch(key) is not None
