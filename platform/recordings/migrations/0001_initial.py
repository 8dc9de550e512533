import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Recordings and replays, whose tables `deployments` made. State only: nothing runs on the database."""

    initial = True

    dependencies = [
        ('deployments', '0051_kept_batch_size'),
        ('registry', '0010_of_installation'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name='Recording',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('service', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='recordings', to='deployments.inferenceservice')),
                        ('consent', models.TextField()),
                        ('share_percent', models.FloatField()),
                        ('max_requests', models.PositiveIntegerField()),
                        ('max_bytes', models.BigIntegerField()),
                        ('requests', models.PositiveIntegerField(default=0)),
                        ('bytes', models.BigIntegerField(default=0)),
                        ('created_at', models.DateTimeField()),
                        ('created_by', models.CharField(max_length=300)),
                        ('expires_at', models.DateTimeField(db_index=True)),
                        ('ended_at', models.DateTimeField(null=True)),
                        ('end_reason', models.TextField(blank=True)),
                    ],
                    options={
                        'db_table': 'deployments_recording',
                        'constraints': [models.UniqueConstraint(condition=models.Q(('ended_at', None)), fields=('service',), name='recording_one_at_a_time')],
                    },
                ),
                migrations.CreateModel(
                    name='Replay',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('status', models.CharField(choices=[('PENDING', 'PENDING'), ('DONE', 'DONE'), ('FAILED', 'FAILED')], default='PENDING', max_length=10)),
                        ('reason', models.TextField(blank=True)),
                        ('claim', models.UUIDField(null=True)),
                        ('attempts', models.PositiveSmallIntegerField(default=0)),
                        ('next_try_at', models.DateTimeField(null=True)),
                        ('created_at', models.DateTimeField()),
                        ('created_by', models.CharField(max_length=300)),
                        ('finished_at', models.DateTimeField(null=True)),
                        ('service', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='replays', to='deployments.inferenceservice')),
                        ('recording', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='replays', to='recordings.recording')),
                        ('model_version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='registry.modelversion')),
                        ('terms', models.JSONField(default=dict)),
                        ('done', models.PositiveIntegerField(default=0)),
                        ('total', models.PositiveIntegerField(default=0)),
                        ('report', models.JSONField(default=dict)),
                        ('worst', models.JSONField(default=list)),
                    ],
                    options={
                        'db_table': 'deployments_replay',
                        'indexes': [models.Index(condition=models.Q(('finished_at', None)), fields=['next_try_at'], name='replay_pending')],
                    },
                ),
            ],
        ),
    ]
