import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Repartitions, whose table `deployments` made. State only: nothing runs on the database."""

    initial = True

    dependencies = [
        ('clusters', '0001_initial'),
        ('deployments', '0051_kept_batch_size'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name='Repartition',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='repartitions', to='clusters.cluster')),
                        ('node', models.CharField(max_length=253)),
                        ('product', models.CharField(max_length=63)),
                        ('before', models.JSONField()),
                        ('after', models.JSONField()),
                        ('leaving', models.JSONField()),
                        ('wanted', models.TextField()),
                        ('missing', models.JSONField()),
                        ('served', models.PositiveIntegerField()),
                        ('why', models.TextField()),
                        ('phase', models.CharField(choices=[('Proposed', 'Proposed'), ('Declined', 'Declined'), ('Outdated', 'Outdated'), ('Draining', 'Draining'), ('Cutting', 'Cutting'), ('Reverting', 'Reverting'), ('Done', 'Done'), ('Aborted', 'Aborted')], max_length=10)),
                        ('since', models.DateTimeField()),
                        ('message', models.TextField(blank=True)),
                        ('held', models.TextField(blank=True, db_default='', default='')),
                        ('config', models.CharField(max_length=63)),
                        ('config_before', models.CharField(max_length=63)),
                        ('written_at', models.DateTimeField(null=True)),
                        ('settled_at', models.DateTimeField(null=True)),
                        ('proposed_at', models.DateTimeField()),
                        ('proposed_by', models.CharField(max_length=300)),
                        ('decided_at', models.DateTimeField(null=True)),
                        ('decided_by', models.CharField(blank=True, db_default='', default='', max_length=300)),
                        ('decision_reason', models.TextField(blank=True, db_default='', default='')),
                        ('aborted_at', models.DateTimeField(null=True)),
                        ('aborted_by', models.CharField(blank=True, db_default='', default='', max_length=300)),
                        ('abort_reason', models.TextField(blank=True, db_default='', default='')),
                    ],
                    options={
                        'db_table': 'deployments_repartition',
                        'constraints': [models.UniqueConstraint(condition=models.Q(('settled_at', None)), fields=('cluster', 'node'), name='repartition_one_open_of_a_node')],
                    },
                ),
            ],
        ),
    ]
