"""Limit of the requests of a team's keys; null, as in the rows of the release before, is no limit."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("accounts", "0012_audit_sinks"),
    ]

    operations = [
        migrations.AddField(
            model_name="team",
            name="requests_per_second",
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
    ]
