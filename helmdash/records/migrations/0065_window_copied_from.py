"""Rows that a project made as copies keep whose word their window was."""

from __future__ import annotations

from django.db import migrations, models

_FIELD = models.CharField(
    blank=True,
    choices=[("shipped", "shipped"), ("fallback", "fallback")],
    db_default="",
    default="",
    editable=False,
    help_text="Whose window the row was made with, so that another figure could be changed: "
    "shipped or fallback. Empty: its own.",
    max_length=8,
)


class Migration(migrations.Migration):
    dependencies = [
        ("records", "0064_windows_of_own_refusals"),
    ]

    operations = [
        migrations.AddField(model_name=model, name="window_copied_from", field=_FIELD)
        for model in ("budget", "historicalbudget")
    ]
