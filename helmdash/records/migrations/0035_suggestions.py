"""Rollups have what is learned from calls, and suggestions of edits have a table."""

from __future__ import annotations

from typing import Any

import django.db.models.deletion
from django.db import migrations, models


def mark_projects(apps: Any, schema_editor: Any) -> None:
    """Whose calls are to be counted once more, by a job; the other figures stay in use
    meanwhile. A project that is at an older version goes on from there."""
    RollupState = apps.get_model("records", "RollupState")
    Call = apps.get_model("records", "Call")
    for project in apps.get_model("records", "Project").objects.all():
        if not Call.objects.filter(project_id=project.pk).exists():
            continue
        state = RollupState.objects.filter(project_id=project.pk).first()
        version = 2 if state is None else min(state.version, 2)
        RollupState.objects.update_or_create(
            project_id=project.pk, defaults={"version": version, "rebuilt_down_to": None}
        )


class Migration(migrations.Migration):
    dependencies = [
        ("records", "0034_client_events"),
    ]

    operations = [
        migrations.CreateModel(
            name="Suggestion",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("model_key", models.CharField(max_length=255)),
                ("model", models.CharField(max_length=255)),
                ("upstream", models.CharField(blank=True, default="", max_length=64)),
                ("figure", models.CharField(max_length=20)),
                ("state", models.CharField(default="open", max_length=10)),
                (
                    "changes",
                    models.JSONField(help_text="Columns of the budget, and what they are to be."),
                ),
                (
                    "today",
                    models.JSONField(help_text="The same columns as they were when it was made."),
                ),
                ("evidence", models.JSONField(help_text="core.evidence.suggested.Evidence")),
                ("made_at", models.DateTimeField()),
                ("refreshed_at", models.DateTimeField(help_text="When the calls last showed it.")),
                ("decided_at", models.DateTimeField(null=True)),
                ("decided_by", models.CharField(blank=True, default="", max_length=150)),
                ("reason", models.CharField(blank=True, default="", max_length=500)),
                ("effect", models.JSONField(null=True)),
            ],
        ),
        migrations.RemoveConstraint(
            model_name="rollup",
            name="rollup_marginal_known",
        ),
        migrations.AlterField(
            model_name="rollupstate",
            name="version",
            field=models.PositiveSmallIntegerField(
                default=3, help_text="Which marginals are counted: core.rollups.figures.VERSION."
            ),
        ),
        migrations.AddConstraint(
            model_name="rollup",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "marginal__in",
                        [
                            "all",
                            "model",
                            "upstream",
                            "client",
                            "purpose",
                            "variant",
                            "level",
                            "cause",
                            "finish",
                            "size",
                            "lane",
                            "fit",
                            "fit_model",
                            "fit_caller",
                            "evidence",
                        ],
                    )
                ),
                name="rollup_marginal_known",
            ),
        ),
        migrations.AddField(
            model_name="suggestion",
            name="project",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="records.project",
            ),
        ),
        migrations.AddConstraint(
            model_name="suggestion",
            constraint=models.UniqueConstraint(
                fields=("project", "model_key", "upstream", "figure"), name="suggestion_figure"
            ),
        ),
        migrations.AddConstraint(
            model_name="suggestion",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "figure__in",
                        [
                            "input_tokens",
                            "context_length",
                            "output_tokens",
                            "chars_per_token",
                            "max_catalog_bytes",
                            "tier",
                            "prompt_variant",
                            "wants_strict_json",
                        ],
                    )
                ),
                name="suggestion_figure_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="suggestion",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", ["open", "accepted", "dismissed", "gone"])),
                name="suggestion_state_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="suggestion",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("state", "open"), ("decided_at__isnull", False), _connector="OR"
                ),
                name="suggestion_decided_at",
            ),
        ),
        migrations.RunPython(mark_projects, migrations.RunPython.noop),
    ]
