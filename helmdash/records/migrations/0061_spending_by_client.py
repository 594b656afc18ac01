"""Rollups tell what each client's calls of each model took; older calls are counted by a job."""

from __future__ import annotations

from typing import Any

from django.db import migrations, models


def mark_projects(apps: Any, schema_editor: Any) -> None:
    """Whose calls are to be counted for it; the other figures stay in use meanwhile.

    What was being counted begins anew: it went through its newest calls without this.
    """
    RollupState = apps.get_model("records", "RollupState")
    Call = apps.get_model("records", "Call")
    RollupState.objects.exclude(is_complete=True, version=5).update(rebuilt_down_to=None)
    for project in apps.get_model("records", "Project").objects.all():
        has_calls = Call.objects.filter(project_id=project.pk).exists()
        state = RollupState.objects.filter(project_id=project.pk).first()
        if state is None and has_calls:
            RollupState.objects.create(project_id=project.pk, version=5)
        elif state is not None and state.is_complete and state.version == 5 and not has_calls:
            state.version = 6
            state.save()


class Migration(migrations.Migration):
    dependencies = [
        ("records", "0060_channels_take_leave"),
    ]

    operations = [
        migrations.AlterField(
            model_name="rollupstate",
            name="version",
            field=models.PositiveSmallIntegerField(
                default=6, help_text="Which marginals are counted: core.rollups.figures.VERSION."
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
                            "plan_model",
                            "spending",
                        ],
                    )
                ),
                name="rollup_marginal_known",
            ),
        ),
        migrations.RunPython(mark_projects, migrations.RunPython.noop),
    ]
