from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("deployments", "0065_own_replicas")]

    operations = [
        migrations.AddField("inferenceservice", "kept_percent", models.FloatField(default=0, db_default=0)),
    ]
