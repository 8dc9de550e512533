import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Events and webhooks, whose tables `deployments` made. State only: nothing runs on the database."""

    initial = True

    dependencies = [
        ('accounts', '0007_audit_lookups'),
        ('clusters', '0001_initial'),
        ('deployments', '0051_kept_batch_size'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name='Event',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('service', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='events', to='deployments.inferenceservice')),
                        ('cluster', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='events', to='clusters.cluster')),
                        ('seq', models.BigIntegerField()),
                        ('at', models.DateTimeField()),
                        ('kind', models.CharField(max_length=40)),
                        ('message', models.TextField()),
                        ('revision', models.CharField(blank=True, max_length=63)),
                        ('rollout', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='events', to='deployments.rollout')),
                        ('request_id', models.CharField(blank=True, db_default='', default='', max_length=64)),
                    ],
                    options={
                        'db_table': 'deployments_event',
                        'constraints': [models.UniqueConstraint(fields=('service', 'seq'), name='event_seq_of_service'), models.UniqueConstraint(fields=('cluster', 'seq'), name='event_seq_of_cluster'), models.CheckConstraint(condition=models.Q(('service__isnull', True), ('cluster__isnull', True), _connector='XOR'), name='event_of_service_or_cluster')],
                    },
                ),
                migrations.CreateModel(
                    name='Webhook',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('team', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='webhooks', to='accounts.team')),
                        ('url', models.CharField(max_length=1000)),
                        ('events', models.JSONField()),
                        ('description', models.CharField(blank=True, max_length=300)),
                        ('enabled', models.BooleanField(default=True)),
                        ('sealed_secret', models.TextField()),
                        ('created_at', models.DateTimeField()),
                        ('created_by', models.CharField(max_length=300)),
                    ],
                    options={
                        'db_table': 'deployments_webhook',
                    },
                ),
                migrations.CreateModel(
                    name='WebhookDelivery',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('webhook', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='events.webhook')),
                        ('event', models.CharField(max_length=40)),
                        ('payload', models.JSONField()),
                        ('status', models.CharField(choices=[('PENDING', 'PENDING'), ('DELIVERED', 'DELIVERED'), ('FAILED', 'FAILED')], default='PENDING', max_length=9)),
                        ('tries', models.PositiveSmallIntegerField(default=0)),
                        ('answer_status', models.PositiveSmallIntegerField(null=True)),
                        ('answer', models.TextField(blank=True)),
                        ('next_try_at', models.DateTimeField()),
                        ('created_at', models.DateTimeField()),
                        ('finished_at', models.DateTimeField(null=True)),
                    ],
                    options={
                        'verbose_name_plural': 'webhook deliveries',
                        'db_table': 'deployments_webhookdelivery',
                        'indexes': [models.Index(condition=models.Q(('status', 'PENDING')), fields=['next_try_at'], name='delivery_pending')],
                    },
                ),
            ],
        ),
    ]
