from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("deployments", "0059_controller_processes")]

    operations = [
        migrations.AddField(
            "revision",
            "pod",
            models.JSONField(default=dict, db_default=models.Value({}, output_field=models.JSONField())),
        ),
    ]
