import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Builds, tunings and trials, whose tables `deployments` made. State only: nothing runs on the database."""

    initial = True

    dependencies = [
        ('clusters', '0001_initial'),
        ('deployments', '0051_kept_batch_size'),
        ('registry', '0010_of_installation'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name='Build',
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
                        ('model_version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='builds', to='registry.modelversion')),
                        ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='builds', to='clusters.cluster')),
                        ('order', models.JSONField(default=dict)),
                        ('progress', models.JSONField(default=dict)),
                        ('report', models.JSONField(default=dict)),
                        ('digest', models.CharField(blank=True, max_length=71)),
                        ('size_bytes', models.BigIntegerField(default=0)),
                        ('version', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='made_by_builds', to='registry.modelversion')),
                    ],
                    options={
                        'db_table': 'deployments_build',
                        'indexes': [models.Index(condition=models.Q(('finished_at', None)), fields=['next_try_at'], name='build_pending')],
                    },
                ),
                migrations.CreateModel(
                    name='Tuning',
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
                        ('model_version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='tunings', to='registry.modelversion')),
                        ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='tunings', to='clusters.cluster')),
                        ('service', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='tunings', to='deployments.inferenceservice')),
                        ('order', models.JSONField(default=dict)),
                        ('model_config', models.JSONField(default=dict)),
                        ('progress', models.JSONField(default=dict)),
                        ('report', models.JSONField(default=dict)),
                        ('plot', models.TextField(blank=True)),
                    ],
                    options={
                        'db_table': 'deployments_tuning',
                        'indexes': [models.Index(condition=models.Q(('finished_at', None)), fields=['next_try_at'], name='tuning_pending')],
                    },
                ),
                migrations.CreateModel(
                    name='Trial',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('status', models.CharField(choices=[('PENDING', 'PENDING'), ('DONE', 'DONE'), ('FAILED', 'FAILED')], default='PENDING', max_length=10)),
                        ('reason', models.TextField(blank=True)),
                        ('claim', models.UUIDField(null=True)),
                        ('attempts', models.PositiveSmallIntegerField(default=0)),
                        ('next_try_at', models.DateTimeField(null=True)),
                        ('created_by', models.CharField(max_length=300)),
                        ('finished_at', models.DateTimeField(null=True)),
                        ('model_version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='trials', to='registry.modelversion')),
                        ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='trials', to='clusters.cluster')),
                        ('request', models.TextField()),
                        ('stage', models.CharField(blank=True, max_length=200)),
                        ('answer', models.TextField(blank=True)),
                        ('report', models.JSONField(default=dict)),
                        ('created_at', models.DateTimeField(db_index=True)),
                    ],
                    options={
                        'db_table': 'deployments_trial',
                        'indexes': [models.Index(condition=models.Q(('finished_at', None)), fields=['next_try_at'], name='trial_pending')],
                    },
                ),
            ],
        ),
    ]
