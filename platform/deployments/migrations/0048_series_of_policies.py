from django.db import migrations

OPEN = ("Pending", "Progressing", "Paused")


def let_administrators_queries_be(apps, schema_editor):
    """Let the queries that administrators of the installation saved read all series, as they could until now.

    Everybody else's are limited to the series of the service from now on.
    """
    RolloutPolicy = apps.get_model("deployments", "RolloutPolicy")
    Rollout = apps.get_model("deployments", "Rollout")
    AuditEntry = apps.get_model("accounts", "AuditEntry")
    administrators = set(
        apps.get_model("accounts", "Membership")
        .objects.filter(team__name="default", role="admin")
        .values_list("user__username", flat=True)
    )
    for policy in RolloutPolicy.objects.all():
        saved = AuditEntry.objects.filter(action="policy.apply", target=f"policies/{policy.name}").order_by("-id").first()
        author = (policy.created_by if saved is None else saved.actor).partition(" (")[0]
        before = policy.document
        after = reading_all(before)
        if author not in administrators or after == before:
            continue
        RolloutPolicy.objects.filter(pk=policy.pk).update(document=after)
        for rollout in Rollout.objects.filter(policy_name=policy.name, phase__in=OPEN):
            if rollout.policy_document == before:
                Rollout.objects.filter(pk=rollout.pk).update(policy_document=after)


def reading_all(document):
    """Return a policy's document with `series: all` in each of its metrics."""
    return {
        **document,
        **({"analysis": _gate(document["analysis"])} if document.get("analysis") else {}),
        "steps": [
            {**step, "analysis": _gate(step["analysis"])} if step.get("analysis") else step
            for step in document.get("steps", [])
        ],
    }


def _gate(gate):
    if not gate.get("metrics"):
        return gate
    return {**gate, "metrics": [{"series": "all", **metric} for metric in gate["metrics"]]}


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0007_audit_lookups'),
        ('deployments', '0047_served_until'),
    ]

    operations = [
        migrations.RunPython(let_administrators_queries_be, migrations.RunPython.noop),
    ]
