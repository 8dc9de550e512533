"""Limit of the rows of a key's requests; null, as in the rows of the release before, is no limit."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("access", "0003_key_limits"),
    ]

    operations = [
        migrations.AddField(
            model_name="accesskey",
            name="rows_per_minute",
            field=models.PositiveIntegerField(null=True),
        ),
    ]
