import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('clusters', '0003_prometheus'),
        ('deployments', '0061_owner_object'),
    ]

    operations = [
        migrations.CreateModel(
            name='ResourceObject',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(max_length=40)),
                ('namespace', models.CharField(max_length=63)),
                ('name', models.CharField(max_length=253)),
                ('uid', models.CharField(max_length=64)),
                ('digest', models.CharField(blank=True, max_length=64)),
                ('acted', models.BigIntegerField(default=0)),
                ('problem', models.TextField(blank=True)),
                ('retry_at', models.DateTimeField(null=True)),
                ('written', models.BigIntegerField(default=-1)),
                ('event_seq', models.BigIntegerField(default=0)),
                ('cluster', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='clusters.cluster')),
                ('service', models.ForeignKey(db_constraint=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='deployments.inferenceservice')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('cluster', 'kind', 'namespace', 'name'), name='resource_object_unique')],
            },
        ),
    ]
