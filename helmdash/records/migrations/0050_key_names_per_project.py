"""Names of keys are unique within a project: nobody learns what those of another are called."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("records", "0049_repeated_streams"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="apikey",
            name="api_key_one_active_per_name",
        ),
        migrations.AddConstraint(
            model_name="apikey",
            constraint=models.UniqueConstraint(
                condition=models.Q(("revoked_at__isnull", True)),
                fields=("project", "name"),
                name="api_key_one_active_per_project_and_name",
                violation_error_message="An active key has this name. Revoke it first.",
            ),
        ),
    ]
