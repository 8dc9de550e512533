from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("deployments", "0005_webhooks_of_teams")]

    operations = [
        migrations.AddField("inferenceservice", "restart_number", models.PositiveIntegerField(default=0)),
    ]
