"""Hash chain of the audit log, in tables of its own; the release before writes entries without it."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0010_team_quotas'),
    ]

    operations = [
        migrations.CreateModel(
            name='AuditCheckpoint',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('position', models.BigIntegerField(db_index=True)),
                ('entry', models.BigIntegerField()),
                ('hash', models.CharField(max_length=64)),
                ('pruned', models.BooleanField(db_default=False, default=False)),
                ('at', models.CharField(max_length=32)),
                ('signature', models.CharField(max_length=128)),
            ],
        ),
        migrations.CreateModel(
            name='AuditLink',
            fields=[
                ('position', models.BigIntegerField(primary_key=True, serialize=False)),
                ('entry', models.BigIntegerField(unique=True)),
                ('linked_at', models.DateTimeField()),
                ('hash', models.CharField(max_length=64)),
            ],
        ),
        migrations.CreateModel(
            name='AuditSigningKey',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('sealed', models.TextField()),
                ('created_at', models.DateTimeField()),
            ],
        ),
    ]
