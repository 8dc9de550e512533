"""Quotas of teams; null, as in the rows of the release before, is no limit."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("accounts", "0009_token_makers_and_demands"),
    ]

    operations = [
        migrations.AddField(
            model_name="team",
            name="max_versions",
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="team",
            name="max_bytes",
            field=models.PositiveBigIntegerField(blank=True, null=True),
        ),
    ]
