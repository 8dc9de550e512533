from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("deployments", "0036_analysis_points")]

    operations = [
        migrations.AddField(
            "revision",
            "placement_wish",
            models.JSONField(default=dict, db_default=models.Value({}, output_field=models.JSONField())),
        ),
    ]
