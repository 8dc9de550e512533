from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("deployments", "0034_scaling_behavior")]

    operations = [
        migrations.AddField("cluster", "gpus", models.JSONField(null=True)),
        migrations.AddField("cluster", "gpus_at", models.DateTimeField(null=True)),
        migrations.AddField(
            "revision",
            "placement",
            models.JSONField(default=dict, db_default=models.Value({}, output_field=models.JSONField())),
        ),
    ]
