from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('deployments', '0053_service_access'),
    ]

    operations = [
        migrations.AddField(
            model_name='inferenceservice',
            name='limits',
            field=models.JSONField(null=True),
        ),
    ]
