from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('deployments', '0055_service_cors'),
    ]

    operations = [
        migrations.AddField(
            model_name='revision',
            name='secret_env',
            field=models.JSONField(db_default=models.Value({}, output_field=models.JSONField()), default=dict),
        ),
    ]
