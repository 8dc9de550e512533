from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("deployments", "0062_custom_predictor")]

    operations = [
        migrations.AddField(
            "revision",
            "explainer",
            models.JSONField(default=dict, db_default=models.Value({}, output_field=models.JSONField())),
        ),
        migrations.AddField("revision", "explainer_replicas", models.PositiveIntegerField(default=0, db_default=0)),
    ]
