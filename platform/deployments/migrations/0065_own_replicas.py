from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("deployments", "0064_model_pools")]

    operations = [
        migrations.AddField(
            "revision",
            "own_scaling",
            models.JSONField(default=dict, db_default=models.Value({}, output_field=models.JSONField())),
        ),
        migrations.AddField("revision", "own_replicas", models.PositiveIntegerField(default=0, db_default=0)),
    ]
