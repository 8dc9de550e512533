"""Limit of the rows of the requests of a team's keys; null, as in the rows of the release before, is no limit."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0014_demand_digests"),
    ]

    operations = [
        migrations.AddField(
            model_name="team",
            name="rows_per_minute",
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
    ]
