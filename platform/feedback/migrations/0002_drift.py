
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('deployments', '0066_kept_percent'),
        ('feedback', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='DriftBlock',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('began_at', models.DateTimeField()),
                ('stable', models.CharField(max_length=100)),
                ('canary', models.CharField(blank=True, max_length=100)),
                ('rows', models.PositiveIntegerField(default=0)),
                ('counts', models.JSONField(default=dict)),
                ('first', models.BinaryField(default=b'')),
                ('service', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='deployments.inferenceservice')),
            ],
        ),
        migrations.CreateModel(
            name='DriftFeature',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=200)),
                ('source', models.CharField(max_length=10)),
                ('kind', models.CharField(max_length=10)),
                ('version', models.BigIntegerField(null=True)),
                ('bins', models.JSONField(null=True)),
                ('since', models.DateTimeField()),
                ('state', models.JSONField(null=True)),
                ('evidence', models.FloatField(default=0.0)),
                ('alarm_at', models.DateTimeField(null=True)),
                ('sentence', models.CharField(blank=True, max_length=1000)),
                ('service', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='deployments.inferenceservice')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('service', 'name'), name='drift_feature_unique')],
            },
        ),
        migrations.CreateModel(
            name='DriftHour',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('revision', models.CharField(max_length=100)),
                ('hour', models.DateTimeField()),
                ('counts', models.JSONField(default=dict)),
                ('service', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='deployments.inferenceservice')),
            ],
            options={
                'indexes': [models.Index(fields=['hour'], name='drift_by_age')],
                'constraints': [models.UniqueConstraint(fields=('service', 'revision', 'hour'), name='drift_once_an_hour')],
            },
        ),
    ]
