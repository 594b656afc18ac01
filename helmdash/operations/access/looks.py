"""How pages look to somebody: kept with the account, so that it goes where they sign in."""

from __future__ import annotations

from helmdash.operations.database.transactions import write
from helmdash.records.models import Look


def keep_look(*, user_id: int, theme: str | None = None, zone: str | None = None) -> None:
    """Keep what somebody chose; None: as it was. theme: light, dark, or empty for the system's;
    zone: a name of the zone database, or empty for the browser's."""
    chosen = {"theme": theme, "zone": zone}
    values = {name: value for name, value in chosen.items() if value is not None}
    write(lambda: Look.objects.update_or_create(user_id=user_id, defaults=values))
