"""The tables of a new database, made at once, as the models have them.

`migrate` alone tells Django's state of all models again after each of hundreds of steps: ten of the
fifteen seconds until a first page. What the migrations say beyond the models is taken from them;
tests/operations/test_fresh_tables.py compares the tables of both ways.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from django.apps import apps
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

# Whoever starts at the same time on PostgreSQL waits for it and finds the tables: any number, as
# long as nobody else who uses the database has the same.
_LOCK = 0x48656C6D


def make_tables() -> bool:
    """Make all tables, and note all migrations as done, where there is none of either yet.

    Gives whether it did: a database with any of them is for `migrate`. All or nothing.
    """
    if not _is_new():
        return False
    executor = MigrationExecutor(connection)
    with connection.schema_editor() as editor:
        if connection.vendor == "postgresql":
            editor.execute(f"SELECT pg_advisory_xact_lock({_LOCK})")
        # Only one may write to SQLite from here on.
        if not _is_new():
            return False
        editor.create_model(executor.recorder.Migration)
        for model in apps.get_models():
            if _is_made_here(model, executor):
                editor.create_model(model)
        # Indexes and keys, which the steps below read.
        while editor.deferred_sql:
            editor.execute(editor.deferred_sql.pop(0), None)
        _go_beyond_models(editor)
        for migration, _ in executor.migration_plan(executor.loader.graph.leaf_nodes()):
            executor.recorder.record_applied(migration.app_label, migration.name)
    return True


def _is_new() -> bool:
    ours = {"django_migrations", *(model._meta.db_table for model in apps.get_models())}
    return ours.isdisjoint(connection.introspection.table_names())


def _is_made_here(model: Any, executor: MigrationExecutor) -> bool:
    has_migrations = model._meta.app_label in executor.loader.migrated_apps
    return has_migrations and bool(model._meta.can_migrate(connection))


def _go_beyond_models(editor: Any) -> None:
    """What only migrations say, and only to PostgreSQL."""
    if connection.vendor != "postgresql":
        return
    for model in apps.get_models(include_auto_created=True):
        # Between Django's users, groups and permissions: integers to its models, and to its
        # migrations of the kind that settings.DEFAULT_AUTO_FIELD names.
        if model._meta.auto_created:
            editor.execute(f"ALTER TABLE {model._meta.db_table} ALTER COLUMN id TYPE bigint")
    _migration("0013_rollups").store_plainly(apps, editor)
    _migration("0014_call_names").order_by_bytes(apps, editor)
    _migration("0020_partitions").partition(editor)
    _migration("0056_keys_by_project").key_by_project(editor, aside=False)
    _migration("0057_projects_asked_once").ask_for_projects_once(editor)
    _migration("0058_long_lived_conversations").tell_how_long(apps, editor)


def _migration(name: str) -> Any:
    return import_module(f"helmdash.records.migrations.{name}")
