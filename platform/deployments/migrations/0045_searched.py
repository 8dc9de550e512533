from django.db import migrations, models
from django.db.models import OuterRef, Subquery, TextField, Value
from django.db.models.functions import Coalesce, Concat, Lower

from common.db.trigrams import TrigramIndex


def tell_what_is_searched(apps, schema_editor):
    """Write it for the services there are, as `deployments.mapping.put_searched` does."""
    Service, Version = apps.get_model("deployments", "InferenceService"), apps.get_model("registry", "ModelVersion")
    model = Version.objects.filter(pk=OuterRef("model_version")).values("model__name")
    parts = ["namespace", Value("/"), "name", Value(" "), Coalesce(Subquery(model[:1]), Value(""))]
    services = Service.objects.using(schema_editor.connection.alias)
    services.update(searched=Lower(Concat(*parts, output_field=TextField())))


class Migration(migrations.Migration):
    dependencies = [
        ("deployments", "0044_due"),
        ("registry", "0007_searches"),
    ]

    operations = [
        migrations.AddField(
            model_name="inferenceservice",
            name="searched",
            field=models.TextField(blank=True, db_default="", default=""),
        ),
        migrations.RunPython(tell_what_is_searched, migrations.RunPython.noop),
        TrigramIndex("service_parts", "deployments_inferenceservice", "searched"),
    ]
