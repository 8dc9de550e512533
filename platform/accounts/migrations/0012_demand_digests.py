"""Demands of images by digest; false in the rows of the release before."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0011_audit_chain"),
    ]

    operations = [
        migrations.AddField(
            model_name="demandrow",
            name="digests",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
