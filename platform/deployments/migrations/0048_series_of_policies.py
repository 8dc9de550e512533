from django.db import migrations, models


def let_administrators_queries_be(apps, schema_editor):
    """Let the queries that administrators of the installation saved read all series, as they could until now.

    Everybody else's are limited to the series of the service from now on. The documents stay as they are, so that an
    earlier release reads them.
    """
    RolloutPolicy = apps.get_model("deployments", "RolloutPolicy")
    AuditEntry = apps.get_model("accounts", "AuditEntry")
    administrators = set(
        apps.get_model("accounts", "Membership")
        .objects.filter(team__name="default", role="admin")
        .values_list("user__username", flat=True)
    )
    for policy in RolloutPolicy.objects.all():
        saved = AuditEntry.objects.filter(action="policy.apply", target=f"policies/{policy.name}").order_by("-id").first()
        author = (policy.created_by if saved is None else saved.actor).partition(" (")[0]
        if author in administrators:
            RolloutPolicy.objects.filter(pk=policy.pk).update(all_series_version=policy.version)


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0007_audit_lookups'),
        ('deployments', '0047_served_until'),
    ]

    operations = [
        migrations.AddField(
            model_name='rolloutpolicy',
            name='all_series_version',
            field=models.PositiveIntegerField(null=True),
        ),
        migrations.RunPython(let_administrators_queries_be, migrations.RunPython.noop),
    ]
