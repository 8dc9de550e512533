from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("deployments", "0004_webhooks")]

    operations = [
        migrations.AddField("inferenceservice", "restart_number", models.PositiveIntegerField(default=0)),
    ]
