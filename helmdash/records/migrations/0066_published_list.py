"""The fallback row says whether the list of what vendors publish is used."""

from __future__ import annotations

from django.db import migrations, models

_FIELD = models.BooleanField(
    db_default=False,
    default=False,
    help_text="Of the fallback alone: windows and prices that no row knows are those that "
    "vendors publish, by the list that HelmDash ships.",
)


class Migration(migrations.Migration):
    dependencies = [
        ("records", "0065_window_copied_from"),
    ]

    operations = [
        migrations.AddField(model_name=model, name="uses_published_list", field=_FIELD)
        for model in ("budget", "historicalbudget")
    ]
