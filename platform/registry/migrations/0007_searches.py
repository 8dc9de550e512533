from django.db import migrations

from common.db.trigrams import TrigramIndex


class Migration(migrations.Migration):
    dependencies = [
        ("registry", "0006_by_platform"),
    ]

    operations = [
        TrigramIndex("model_name_parts", "registry_registeredmodel", "UPPER(name)"),
        TrigramIndex("model_description_parts", "registry_registeredmodel", "UPPER(description)"),
    ]
