from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('deployments', '0052_models_in_rooms_of_their_own'),
    ]

    operations = [
        migrations.AddField(
            model_name='inferenceservice',
            name='access',
            field=models.JSONField(null=True),
        ),
    ]
