from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('deployments', '0057_pod_templates'),
    ]

    operations = [
        migrations.AddField(
            model_name='trafficpoint',
            name='client_errors',
            field=models.BigIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='trafficpoint',
            name='has_weight',
            field=models.BooleanField(db_default=True, default=True),
        ),
    ]
