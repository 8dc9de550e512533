from django.db import migrations, models


class Migration(migrations.Migration):
    """Revisions that the release before makes meanwhile keep none."""

    dependencies = [
        ('deployments', '0050_limits'),
    ]

    operations = [
        migrations.AddField(
            model_name='revision',
            name='kept_batch_size',
            field=models.PositiveIntegerField(null=True),
        ),
    ]
