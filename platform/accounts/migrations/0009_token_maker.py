"""Who made a token: one made for another user cannot approve."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0007_audit_lookups"),
    ]

    operations = [
        migrations.AddField(
            model_name="apitoken",
            name="made_by",
            field=models.CharField(blank=True, db_default="", default="", max_length=150),
        ),
    ]
