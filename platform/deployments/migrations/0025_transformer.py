from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("deployments", "0024_stopped")]

    operations = [
        migrations.AddField("revision", "transformer", models.JSONField(default=dict)),
        migrations.AddField(
            "revision", "transformer_replicas", models.PositiveIntegerField(default=0, db_default=0)
        ),
    ]
