from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("deployments", "0061_owner_object")]

    operations = [
        migrations.AddField(
            "revision", "custom", models.JSONField(default=dict, db_default=models.Value({}, output_field=models.JSONField()))
        ),
    ]
