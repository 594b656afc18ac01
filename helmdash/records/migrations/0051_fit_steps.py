"""The steps of a fit beside its Trim. Rows of before keep theirs in the Trim alone: none is read."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("records", "0050_key_names_per_project"),
    ]

    operations = [
        migrations.AddField(
            model_name="fit",
            name="steps",
            field=models.JSONField(
                blank=True,
                help_text="Steps of the Trim. Null: recorded before they were kept.",
                null=True,
            ),
        ),
    ]
