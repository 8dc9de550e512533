from typing import Any

from django.db import migrations, models
from django.db.models import F


def begin_with_the_least(apps: Any, _schema_editor: Any) -> None:
    """Give every revision the number of replicas that it had so far: until now both bounds were the same."""
    apps.get_model("deployments", "Revision").objects.update(replicas=F("min_replicas"))


class Migration(migrations.Migration):
    dependencies = [("deployments", "0007_request_ids")]

    operations = [
        migrations.AddField("revision", "scale_metric", models.CharField(blank=True, max_length=20)),
        migrations.AddField("revision", "scale_target", models.FloatField(null=True)),
        migrations.AddField("revision", "container_concurrency", models.PositiveIntegerField(default=0)),
        migrations.AddField("revision", "load", models.JSONField(default=dict)),
        migrations.AddField("revision", "replicas", models.PositiveIntegerField(default=1), preserve_default=False),
        migrations.RunPython(begin_with_the_least, migrations.RunPython.noop),
    ]
