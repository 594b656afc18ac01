"""All calls that failed have an index of their own, and plans are counted for all of them apart."""

from __future__ import annotations

from typing import Any

from django.db import migrations, models


def mark_projects(apps: Any, schema_editor: Any) -> None:
    """Whose plans are to be counted, once more where they were by other keys."""
    RollupState = apps.get_model("records", "RollupState")
    apps.get_model("records", "Rollup").objects.filter(marginal="plan").delete()
    PlanRecord = apps.get_model("records", "PlanRecord")
    for state in RollupState.objects.filter(is_complete=True, version=4):
        has_plans = PlanRecord.objects.filter(project_id=state.project_id).exists()
        state.version, state.rebuilt_down_to = 3 if has_plans else 5, None
        state.save()
    # Of whatever was being counted, plans were by the other keys.
    RollupState.objects.exclude(is_complete=True, version=5).update(rebuilt_down_to=None)


class Migration(migrations.Migration):
    dependencies = [
        ("records", "0045_weekly_subscriptions"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="call",
            index=models.Index(
                condition=models.Q(("cause", ""), _negated=True),
                fields=["project", "started_at", "id"],
                name="call_failed",
            ),
        ),
        migrations.AlterField(
            model_name="rollupstate",
            name="version",
            field=models.PositiveSmallIntegerField(
                default=5, help_text="Which marginals are counted: core.rollups.figures.VERSION."
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
                        ],
                    )
                ),
                name="rollup_marginal_known",
            ),
        ),
        migrations.RunPython(mark_projects, migrations.RunPython.noop),
    ]
