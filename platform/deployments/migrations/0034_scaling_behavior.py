from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("deployments", "0033_accelerator")]

    operations = [
        migrations.AddField(
            "revision",
            "scale_behavior",
            models.JSONField(default=dict, db_default=models.Value({}, output_field=models.JSONField())),
        ),
        migrations.AlterField("revision", "scale_metric", models.CharField(blank=True, max_length=100)),
    ]
