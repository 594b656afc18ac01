"""Sessions of the pages in Django's table, looked up only by keys that it could have made."""

from __future__ import annotations

import re
from typing import Any, Final

from django.contrib.sessions.backends import db
from django.utils import timezone

# As `_get_new_session_key` of Django makes them.
_KEY: Final = re.compile(r"[a-z0-9]{32}")


class SessionStore(db.SessionStore):
    """Django's, which would ask the database for any cookie of 8 characters and more.

    A quoted cookie may spell a NUL, and PostgreSQL refuses the question: whoever sent it had an
    error of the server from every address.
    """

    def _validate_session_key(self, key: str | None) -> bool:
        return key is not None and _KEY.fullmatch(key) is not None

    def _get_session_from_db(self) -> Any:
        # Not above: Django asks a store for its model while models are being loaded.
        from helmdash.records.access.who_asks import find_session

        # Django asks a store for a session without saying when.
        now = timezone.now()  # noqa: TID251
        found = find_session(self.session_key, now=now) if self.session_key else None
        if found is None:
            self._session_key = None
        return found
