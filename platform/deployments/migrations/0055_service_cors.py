from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('deployments', '0054_service_limits'),
    ]

    operations = [
        migrations.AddField(
            model_name='inferenceservice',
            name='cors',
            field=models.JSONField(null=True),
        ),
    ]
