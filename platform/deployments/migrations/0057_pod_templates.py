from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('deployments', '0056_secret_env'),
    ]

    operations = [
        migrations.AddField(
            model_name='revision',
            name='pod_templates',
            field=models.JSONField(db_default=models.Value({}, output_field=models.JSONField()), default=dict),
        ),
        migrations.AddField(
            model_name='revision',
            name='template_changes',
            field=models.TextField(blank=True, db_default='', default=''),
        ),
        migrations.AddIndex(
            model_name='revision',
            index=models.Index(condition=models.Q(('stopped_at', None), models.Q(('template_changes', ''), _negated=True)), fields=['service'], name='revision_outdated'),
        ),
    ]
