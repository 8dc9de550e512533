import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('registry', '0002_descriptions_tags_lineage'),
    ]

    operations = [
        migrations.CreateModel(
            name='ModelImport',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('model', models.CharField(max_length=128)),
                ('uri', models.CharField(max_length=4000)),
                ('filename', models.CharField(blank=True, max_length=255)),
                ('sha256', models.CharField(blank=True, max_length=64)),
                ('particulars', models.JSONField(default=dict)),
                ('status', models.CharField(choices=[('PENDING', 'PENDING'), ('IMPORTED', 'IMPORTED'), ('FAILED', 'FAILED')], default='PENDING', max_length=10)),
                ('reason', models.TextField(blank=True)),
                ('bytes_done', models.BigIntegerField(default=0)),
                ('bytes_total', models.BigIntegerField(blank=True, null=True)),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('next_try_at', models.DateTimeField(blank=True, null=True)),
                ('claim', models.UUIDField(blank=True, null=True)),
                ('created_at', models.DateTimeField()),
                ('created_by', models.CharField(max_length=300)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('version', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='imports', to='registry.modelversion')),
            ],
            options={
                'indexes': [models.Index(fields=['model', '-id'], name='import_newest'), models.Index(condition=models.Q(('status', 'PENDING')), fields=['next_try_at'], name='import_pending')],
                'constraints': [models.CheckConstraint(condition=models.Q(('status__in', ['PENDING', 'IMPORTED', 'FAILED'])), name='import_status_known')],
            },
        ),
    ]
