from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('deployments', '0059_controller_processes'),
    ]

    operations = [
        migrations.AddField(
            model_name='inferenceservice',
            name='owner_object',
            field=models.JSONField(null=True),
        ),
    ]
