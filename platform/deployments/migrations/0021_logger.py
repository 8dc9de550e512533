from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('deployments', '0020_replays'),
    ]

    operations = [
        migrations.AddField(
            model_name='revision',
            name='logger',
            field=models.JSONField(default=dict),
        ),
    ]
