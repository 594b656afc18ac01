"""`manage.py apikey create|list|revoke`: keys for programs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from helmdash.cli.base import BaseCommand
from helmdash.core.access.expiry import BadExpiry, parse_expiry
from helmdash.core.access.permissions import SHELL
from helmdash.core.text.visible import visible_name
from helmdash.installation import COMMAND
from helmdash.operations.access import project_settings
from helmdash.operations.access.keys import DEFAULT_SCOPES, AccessError, create_key, revoke_key
from helmdash.queries.access.access import SCOPES, api_keys


class Command(BaseCommand):
    help = "Make, list and revoke API keys."

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        create = actions.add_parser("create", help="Make a key and print it, and nothing else.")
        create.add_argument("--name", required=True, help="Who uses it.")
        create.add_argument(
            "--scopes",
            default=",".join(DEFAULT_SCOPES),
            help=f"Separated by commas, of: {', '.join(SCOPES)}. Default: all but admin.",
        )
        create.add_argument("--project", help="Slug of the project. Default: the default project.")
        create.add_argument(
            "--expires",
            metavar="30d|DATE",
            help="When it ends: 30d, 12h, a day (UTC) or a full time. Default: never.",
        )
        actions.add_parser("list", help="List keys, newest first; never the keys themselves.")
        revoke = actions.add_parser("revoke", help="End a key at once.")
        revoke.add_argument("name", metavar="NAME")
        revoke.add_argument(
            "--project", help="Slug of its project. Default: the only one that has such a key."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            getattr(self, "_" + options["action"])(options)
        except BadExpiry as error:
            raise CommandError(f"--expires: {error}") from None
        except AccessError as error:
            raise CommandError(str(error)) from None

    def _create(self, options: dict[str, Any]) -> None:
        scopes = tuple(part.strip() for part in options["scopes"].split(",") if part.strip())
        project_settings.ensure_project()
        made = create_key(
            actor=SHELL,
            name=options["name"],
            scopes=scopes,
            project=options["project"],
            expires_at=_end(options["expires"]),
        )
        self.stdout.write(made.secret)

    def _list(self, options: dict[str, Any]) -> None:
        keys = api_keys()
        if not keys:
            self.stdout.write(f"No keys yet. Make one: {COMMAND} apikey create --name NAME")
            return
        rows = [("NAME", "KEY", "PROJECT", "STATE", "LATEST USE", "EXPIRES", "SCOPES")]
        now = timezone.now()
        for key in keys:
            used = key.latest_used_at.strftime("%Y-%m-%d %H:%M") if key.latest_used_at else "never"
            ends = key.expires_at.strftime("%Y-%m-%d %H:%M") if key.expires_at else "never"
            scopes = ",".join(key.scopes)
            state = key.state(now)
            name = visible_name(key.name)
            rows.append((name, key.prefix + "…", key.project, state, used, ends, scopes))
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        for row in rows:
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            self.stdout.write("  ".join(cells).rstrip())

    def _revoke(self, options: dict[str, Any]) -> None:
        name, project = options["name"], options["project"]
        revoke_key(actor=SHELL, name=name, project=project, now=timezone.now())
        self.stdout.write(f"Revoked {name}.")


def _end(text: str | None) -> datetime | None:
    """None: never. Never is said by leaving the option out, and not by a variable that is empty."""
    if text is not None and not text.strip():
        raise BadExpiry("is empty; leave it out for a key that never ends")
    return parse_expiry(text or "", now=timezone.now())
