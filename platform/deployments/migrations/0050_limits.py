from django.db import migrations, models


class Migration(migrations.Migration):
    """Clusters that the release before makes meanwhile have none."""

    dependencies = [
        ('deployments', '0049_egress'),
    ]

    operations = [
        migrations.AddField(
            model_name='cluster',
            name='limits',
            field=models.JSONField(db_default=models.Value([], output_field=models.JSONField()), default=list),
        ),
    ]
