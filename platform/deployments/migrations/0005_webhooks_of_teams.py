import django.db.models.deletion
from django.db import migrations, models

from common.encryption import seal, unseal

PURPOSE = "secret of a webhook"


def seal_secrets(apps, schema_editor):
    for webhook in apps.get_model("deployments", "Webhook").objects.using(schema_editor.connection.alias):
        webhook.sealed_secret = seal(webhook.sealed_secret, purpose=PURPOSE)
        webhook.save(update_fields=["sealed_secret"])


def unseal_secrets(apps, schema_editor):
    for webhook in apps.get_model("deployments", "Webhook").objects.using(schema_editor.connection.alias):
        webhook.sealed_secret = unseal(webhook.sealed_secret, purpose=PURPOSE)
        webhook.save(update_fields=["sealed_secret"])


class Migration(migrations.Migration):

    dependencies = [
        ("accounts", "0003_teams"),
        ("deployments", "0004_webhooks"),
    ]

    operations = [
        migrations.RenameField("webhook", "secret", "sealed_secret"),
        migrations.AlterField("webhook", "sealed_secret", models.TextField()),
        migrations.AddField("webhook", "enabled", models.BooleanField(default=True)),
        migrations.AddField(
            "webhook",
            "team",
            models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="webhooks",
                to="accounts.team",
            ),
        ),
        migrations.RunPython(seal_secrets, unseal_secrets),
    ]
