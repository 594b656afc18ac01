from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("records", "0029_lanes_and_fits_in_rollups"),
    ]

    operations = [
        migrations.AddField(model_name=name, name="levels", field=models.TextField(null=True))
        for name in ("rollupstate", "uncountedcalls")
    ]
