"""What was made of a step's counts, kept beside them."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("deployments", "0012_approvals")]

    operations = [
        migrations.AddField(model_name="analysisrun", name="evidence", field=models.JSONField(default=dict)),
    ]
