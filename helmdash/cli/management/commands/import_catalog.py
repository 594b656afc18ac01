"""`manage.py import_catalog FILE`: put a catalog into a project."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from helmdash.cli.base import BaseCommand
from helmdash.core.access.permissions import SHELL
from helmdash.core.catalog.catalog import CatalogError
from helmdash.core.text.jsontext import MAX_DEPTH, is_too_deep
from helmdash.operations.fitting import catalogs
from helmdash.queries.access.access import default_project, find_project


class Command(BaseCommand):
    help = "Import a catalog of packs and pipelines from a JSON file."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--name", default="default", help="Name of the catalog.")
        parser.add_argument("--project", help="Slug of the project. Default: the default project.")

    def handle(self, *args: Any, **options: Any) -> None:
        slug = options["project"]
        project = find_project(slug=slug) if slug else default_project()
        if project is None:
            raise CommandError(f"there is no project called {slug}")
        try:
            text = options["file"].read_text(encoding="utf-8")
            if is_too_deep(text):
                raise ValueError(f"nested more than {MAX_DEPTH} levels deep")
            body = json.loads(text)
            done = catalogs.import_catalog(
                actor=SHELL,
                project_id=project.id,
                name=options["name"],
                body=body,
                now=timezone.now(),
            )
        except OSError as error:
            raise CommandError(f"cannot read {options['file']}: {error.strerror}") from None
        except CatalogError as error:
            lines = [f"{problem.field}: {problem.message}" for problem in error.errors]
            raise CommandError("the catalog has errors:\n" + "\n".join(lines)) from None
        except ValueError as error:
            raise CommandError(f"{options['file']} is not JSON: {error}") from None
        state = "imported" if done.is_new else "unchanged"
        self.stdout.write(f"{done.name} revision {done.number}: {state}")
