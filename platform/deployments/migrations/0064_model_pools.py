from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("deployments", "0063_explainer")]

    operations = [
        migrations.AddField(
            "revision",
            "model_pool",
            models.JSONField(default=dict, db_default=models.Value({}, output_field=models.JSONField())),
        ),
        migrations.AddField("revision", "pool", models.CharField(max_length=127, blank=True, default="", db_default="")),
        migrations.AddIndex(
            "revision", models.Index(fields=["pool"], condition=Q(stopped_at=None) & ~Q(pool=""), name="revision_in_pool")
        ),
    ]
