import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('clusters', '0002_unseen'),
        ('deployments', '0057_pod_templates'),
    ]

    operations = [
        migrations.CreateModel(
            name='FleetUpgrade',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('namespace', models.CharField(blank=True, max_length=63)),
                ('percent', models.PositiveSmallIntegerField()),
                ('at_once', models.PositiveSmallIntegerField()),
                ('phase', models.CharField(choices=[('Running', 'Running'), ('Paused', 'Paused'), ('Complete', 'Complete'), ('Cancelled', 'Cancelled')], default='Running', max_length=10)),
                ('message', models.TextField(blank=True)),
                ('is_open', models.BooleanField(default=True, null=True)),
                ('created_at', models.DateTimeField()),
                ('created_by', models.CharField(max_length=300)),
                ('ended_at', models.DateTimeField(null=True)),
                ('cluster', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', db_constraint=False, to='clusters.cluster')),
            ],
        ),
        migrations.CreateModel(
            name='ServiceUpgrade',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('wave', models.PositiveIntegerField()),
                ('state', models.CharField(choices=[('Waiting', 'Waiting'), ('Upgrading', 'Upgrading'), ('Upgraded', 'Upgraded'), ('Failed', 'Failed'), ('Skipped', 'Skipped')], default='Waiting', max_length=10)),
                ('changes', models.TextField()),
                ('message', models.TextField(blank=True)),
                ('ended_at', models.DateTimeField(null=True)),
                ('rollout', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', db_constraint=False, to='deployments.rollout')),
                ('service', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', db_constraint=False, to='deployments.inferenceservice')),
                ('upgrade', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='services', to='fleet.fleetupgrade')),
            ],
        ),
        migrations.AddConstraint(
            model_name='fleetupgrade',
            constraint=models.UniqueConstraint(fields=('is_open',), name='fleet_upgrade_one_open'),
        ),
        migrations.AddIndex(
            model_name='serviceupgrade',
            index=models.Index(fields=['upgrade', 'state'], name='fleet_service_state'),
        ),
        migrations.AddConstraint(
            model_name='serviceupgrade',
            constraint=models.UniqueConstraint(fields=('upgrade', 'service'), name='fleet_service_once'),
        ),
    ]
