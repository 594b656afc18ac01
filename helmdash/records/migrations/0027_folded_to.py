from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("records", "0026_correlations_by_name"),
    ]

    operations = [
        migrations.AddField(
            model_name="rollupstate",
            name="folded_to",
            field=models.BigIntegerField(null=True),
        ),
    ]
