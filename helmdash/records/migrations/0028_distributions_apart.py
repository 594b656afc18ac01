from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("records", "0027_folded_to"),
    ]

    operations = [
        migrations.AddField(model_name="rollup", name=name, field=models.TextField(null=True))
        for name in ("prompt_tokens", "fullness", "latency", "ttft", "estimate")
    ]
