import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """What moved to other apps leaves this one. State only: nothing runs on the database."""

    dependencies = [
        ('clusters', '0001_initial'),
        ('deployments', '0051_kept_batch_size'),
        ('events', '0001_initial'),
        ('gpus', '0001_initial'),
        ('model_jobs', '0001_initial'),
        ('recordings', '0001_initial'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name='inferenceservice',
                    name='cluster',
                    field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='services', to='clusters.cluster'),
                ),
                migrations.DeleteModel(
                    name='WebhookDelivery',
                ),
                migrations.DeleteModel(
                    name='Webhook',
                ),
                migrations.DeleteModel(
                    name='Event',
                ),
                migrations.DeleteModel(
                    name='Replay',
                ),
                migrations.DeleteModel(
                    name='Recording',
                ),
                migrations.DeleteModel(
                    name='Build',
                ),
                migrations.DeleteModel(
                    name='Tuning',
                ),
                migrations.DeleteModel(
                    name='Trial',
                ),
                migrations.DeleteModel(
                    name='Repartition',
                ),
                migrations.DeleteModel(
                    name='Cluster',
                ),
            ],
        ),
    ]
