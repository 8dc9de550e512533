from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("deployments", "0028_last_failure")]

    operations = [migrations.AddField("rollout", "full_replicas", models.PositiveIntegerField(null=True))]
