"""Rollups have lanes and fits; what is there already is counted step by step by a job."""

from __future__ import annotations

from typing import Any

from django.db import migrations, models


def mark_projects(apps: Any, schema_editor: Any) -> None:
    """Whose calls or fits are to be counted once more. Figures of the other marginals stay in use
    meanwhile."""
    RollupState = apps.get_model("records", "RollupState")
    for project in apps.get_model("records", "Project").objects.all():
        rows = (apps.get_model("records", name).objects for name in ("Call", "Fit"))
        if any(each.filter(project_id=project.pk).exists() for each in rows):
            RollupState.objects.update_or_create(
                project_id=project.pk, defaults={"version": 1, "rebuilt_down_to": None}
            )


class Migration(migrations.Migration):
    dependencies = [
        ("records", "0028_distributions_apart"),
    ]

    operations = [
        migrations.AddField(
            model_name="rollupstate",
            name="version",
            field=models.PositiveSmallIntegerField(
                default=2,
                help_text="Which marginals are counted: core.rollups.figures.VERSION.",
            ),
        ),
        migrations.RemoveConstraint(model_name="rollup", name="rollup_marginal_known"),
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
                        ],
                    )
                ),
                name="rollup_marginal_known",
            ),
        ),
        migrations.RunPython(mark_projects, migrations.RunPython.noop),
    ]
