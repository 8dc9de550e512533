from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('deployments', '0060_pod_fields'),
    ]

    operations = [
        migrations.AddField(
            model_name='inferenceservice',
            name='owner_object',
            field=models.JSONField(null=True),
        ),
    ]
