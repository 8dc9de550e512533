"""Who made a token: one made for another user cannot approve. What teams and namespaces demand of rollouts."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0008_identity_proof"),
    ]

    operations = [
        migrations.AddField(
            model_name="apitoken",
            name="made_by",
            field=models.CharField(blank=True, db_default="", default="", max_length=150),
        ),
        migrations.CreateModel(
            name="DemandRow",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("namespace", models.CharField(blank=True, default="", max_length=63)),
                ("policies", models.JSONField(blank=True, default=list)),
                ("approvals", models.PositiveSmallIntegerField(default=0)),
                ("signed_in", models.BooleanField(default=False)),
                ("changed_at", models.DateTimeField()),
                ("changed_by", models.CharField(max_length=300)),
                (
                    "team",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="demand",
                        to="accounts.team",
                    ),
                ),
            ],
            options={"db_table": "accounts_demand"},
        ),
        migrations.AddConstraint(
            model_name="demandrow",
            constraint=models.CheckConstraint(
                condition=models.Q(("team__isnull", True), ("namespace", ""), _connector="XOR"),
                name="demand_of_team_or_namespace",
            ),
        ),
        migrations.AddConstraint(
            model_name="demandrow",
            constraint=models.UniqueConstraint(
                condition=models.Q(("namespace", ""), _negated=True),
                fields=("namespace",),
                name="demand_of_namespace_once",
            ),
        ),
    ]
