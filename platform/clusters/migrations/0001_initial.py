from django.db import migrations, models


class Migration(migrations.Migration):
    """Clusters, whose table `deployments` made. State only: nothing runs on the database."""

    initial = True

    dependencies = [
        ('deployments', '0051_kept_batch_size'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name='Cluster',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('name', models.CharField(max_length=63, unique=True)),
                        ('kind', models.CharField(max_length=20)),
                        ('document', models.JSONField(null=True)),
                        ('credentials', models.TextField(blank=True)),
                        ('gateway_url', models.TextField(blank=True)),
                        ('changed_at', models.DateTimeField(null=True)),
                        ('components', models.JSONField(default=dict)),
                        ('limits', models.JSONField(db_default=models.Value([], output_field=models.JSONField()), default=list)),
                        ('event_seq', models.BigIntegerField(default=0)),
                        ('watch', models.JSONField(default=dict)),
                        ('gpus', models.JSONField(null=True)),
                        ('gpus_at', models.DateTimeField(null=True)),
                        ('prices', models.JSONField(db_default=models.Value({}, output_field=models.JSONField()), default=dict)),
                        ('checked_at', models.DateTimeField(null=True)),
                        ('problem', models.TextField(blank=True)),
                        ('silent_since', models.DateTimeField(null=True)),
                        ('silent_looks', models.PositiveIntegerField(default=0)),
                        ('look_at', models.DateTimeField(null=True)),
                        ('swept_until', models.DateTimeField(null=True)),
                        ('created_at', models.DateTimeField()),
                    ],
                    options={
                        'db_table': 'deployments_cluster',
                    },
                ),
            ],
        ),
    ]
