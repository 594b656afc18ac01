"""The conversation that a fit or a plan was asked for: it goes when that is erased."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("records", "0054_awaited_spans"),
    ]

    operations = [
        migrations.AddField(
            model_name="fit",
            name="conversation",
            field=models.CharField(
                blank=True,
                help_text="Name of the conversation it was asked for; null: not told.",
                max_length=255,
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="planrecord",
            name="conversation",
            field=models.CharField(
                blank=True,
                help_text="Name of the conversation it was asked for; null: not told.",
                max_length=255,
                null=True,
            ),
        ),
        migrations.AddIndex(
            model_name="fit",
            index=models.Index(
                condition=models.Q(("conversation__isnull", False)),
                fields=["project", "conversation"],
                name="fit_by_conversation",
            ),
        ),
        migrations.AddIndex(
            model_name="planrecord",
            index=models.Index(
                condition=models.Q(("conversation__isnull", False)),
                fields=["project", "conversation"],
                name="plan_by_conversation",
            ),
        ),
    ]
