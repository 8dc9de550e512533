"""Budgets of keys and services beside those of teams, which the release before does not see: it joins the team."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('usage', '0002_rows_and_quotas'),
    ]

    operations = [
        migrations.AddField(
            model_name='budget',
            name='key',
            field=models.CharField(max_length=150, null=True, unique=True),
        ),
        migrations.AddField(
            model_name='budget',
            name='service',
            field=models.CharField(max_length=301, null=True, unique=True),
        ),
        migrations.AddField(
            model_name='budgetnotice',
            name='key',
            field=models.CharField(max_length=150, null=True),
        ),
        migrations.AddField(
            model_name='budgetnotice',
            name='service',
            field=models.CharField(max_length=301, null=True),
        ),
        migrations.AlterField(
            model_name='budget',
            name='team',
            field=models.OneToOneField(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='budget', to='accounts.team'),
        ),
        migrations.AlterField(
            model_name='budgetnotice',
            name='team',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='budget_notices', to='accounts.team'),
        ),
        migrations.AddIndex(
            model_name='hourlyusage',
            index=models.Index(fields=['key', 'hour'], name='usage_of_key'),
        ),
        migrations.AddIndex(
            model_name='hourlyusage',
            index=models.Index(fields=['namespace', 'service', 'hour'], name='usage_of_service'),
        ),
        migrations.AddConstraint(
            model_name='budget',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('key__isnull', True), ('service__isnull', True), ('team__isnull', False)), models.Q(('key__isnull', False), ('service__isnull', True), ('team__isnull', True)), models.Q(('key__isnull', True), ('service__isnull', False), ('team__isnull', True)), _connector='OR'), name='budget_of_one'),
        ),
        migrations.AddConstraint(
            model_name='budgetnotice',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('key__isnull', True), ('service__isnull', True), ('team__isnull', False)), models.Q(('key__isnull', False), ('service__isnull', True), ('team__isnull', True)), models.Q(('key__isnull', True), ('service__isnull', False), ('team__isnull', True)), _connector='OR'), name='budget_notice_of_one'),
        ),
        migrations.AddConstraint(
            model_name='budgetnotice',
            constraint=models.UniqueConstraint(fields=('key', 'month', 'measure', 'percent'), name='budget_notice_of_key_once'),
        ),
        migrations.AddConstraint(
            model_name='budgetnotice',
            constraint=models.UniqueConstraint(fields=('service', 'month', 'measure', 'percent'), name='budget_notice_of_service_once'),
        ),
    ]
