"""How far the sinks of the audit log are; the release before does not know the table."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0011_audit_chain'),
    ]

    operations = [
        migrations.CreateModel(
            name='AuditSink',
            fields=[
                ('name', models.CharField(max_length=20, primary_key=True, serialize=False)),
                ('position', models.BigIntegerField(default=0)),
                ('next_try_at', models.DateTimeField()),
                ('sent_at', models.DateTimeField(null=True)),
                ('failed_at', models.DateTimeField(null=True)),
                ('failures', models.PositiveSmallIntegerField(default=0)),
                ('error', models.TextField(blank=True, default='')),
            ],
        ),
    ]
