"""Rules of deleted models, with which the next models of their names begin."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("registry", "0011_import_is_a_claimed_job"),
    ]

    operations = [
        migrations.CreateModel(
            name="KeptRules",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=128, unique=True)),
                ("requires_approval", models.BooleanField(db_default=False, default=False)),
                (
                    "protected_aliases",
                    models.JSONField(blank=True, db_default=models.Value([], models.JSONField()), default=list),
                ),
                ("team", models.CharField(max_length=63)),
                ("kept_at", models.DateTimeField()),
                ("kept_by", models.CharField(max_length=300)),
            ],
            options={"verbose_name_plural": "kept rules"},
        ),
    ]
