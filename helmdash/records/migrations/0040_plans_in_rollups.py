"""Rollups have plans; those that are there already are counted step by step by a job."""

from __future__ import annotations

from typing import Any

from django.db import migrations, models


def mark_projects(apps: Any, schema_editor: Any) -> None:
    """Whose plans are to be counted; the other figures stay in use meanwhile. A project that is at
    an older version goes on from where it is."""
    RollupState = apps.get_model("records", "RollupState")
    PlanRecord = apps.get_model("records", "PlanRecord")
    RollupState.objects.exclude(is_complete=True, version=3).update(rebuilt_down_to=None)
    for project in apps.get_model("records", "Project").objects.all():
        state = RollupState.objects.filter(project_id=project.pk).first()
        if state is not None and not (state.is_complete and state.version == 3):
            continue
        version = 3 if PlanRecord.objects.filter(project_id=project.pk).exists() else 4
        if state is None and version == 4:
            continue
        RollupState.objects.update_or_create(
            project_id=project.pk, defaults={"version": version, "rebuilt_down_to": None}
        )


class Migration(migrations.Migration):
    dependencies = [
        ("records", "0039_net_value"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="planrecord",
            index=models.Index(
                condition=models.Q(("outcome", "running")),
                fields=["project", "started_at"],
                name="plan_running",
            ),
        ),
        migrations.AlterField(
            model_name="rollupstate",
            name="version",
            field=models.PositiveSmallIntegerField(
                default=4, help_text="Which marginals are counted: core.rollups.figures.VERSION."
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
                            "evidence",
                            "plan",
                        ],
                    )
                ),
                name="rollup_marginal_known",
            ),
        ),
        migrations.RunPython(mark_projects, migrations.RunPython.noop),
    ]
