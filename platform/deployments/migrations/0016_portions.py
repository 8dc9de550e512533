from django.db import migrations, models
from django.db.models import F


def split_shares(apps, schema_editor):
    """A shadow's weight was a share of copies up to its last step; that is `mirror` now."""
    for rollout in _shadows(apps):
        _runs(apps, rollout).update(mirror=F("weight"), weight=0)
        if rollout.step_index < len(rollout.policy_document["steps"]):
            rollout.mirror, rollout.weight = rollout.weight, 0
            rollout.save(update_fields=["mirror", "weight"])


def join_shares(apps, schema_editor):
    for rollout in _shadows(apps):
        _runs(apps, rollout).update(weight=F("mirror"), mirror=0)
        if rollout.mirror:
            rollout.weight, rollout.mirror = rollout.mirror, 0
            rollout.save(update_fields=["mirror", "weight"])


def _shadows(apps):
    return apps.get_model("deployments", "Rollout").objects.filter(policy_document__strategy="shadow").iterator()


def _runs(apps, rollout):
    return apps.get_model("deployments", "AnalysisRun").objects.filter(rollout_id=rollout.pk)


class Migration(migrations.Migration):

    dependencies = [
        ('deployments', '0015_rollout_contract'),
    ]

    operations = [
        migrations.AddField(
            model_name='analysisrun',
            name='mirror',
            field=models.PositiveSmallIntegerField(default=0),
        ),
        migrations.AddField(
            model_name='rollout',
            name='match',
            field=models.JSONField(default=list),
        ),
        migrations.AddField(
            model_name='rollout',
            name='mirror',
            field=models.PositiveSmallIntegerField(default=0),
        ),
        migrations.AddConstraint(
            model_name='rollout',
            constraint=models.CheckConstraint(condition=models.Q(('mirror__lte', 100)), name='rollout_mirror_percent'),
        ),
        migrations.RunPython(split_shares, join_shares),
    ]
