"""Demands of images by digest; false in the rows of the release before."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0013_team_request_rate"),
    ]

    operations = [
        migrations.AddField(
            model_name="demandrow",
            name="digests",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
