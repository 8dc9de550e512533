from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('clusters', '0003_prometheus'),
    ]

    operations = [
        migrations.AddField(
            model_name='cluster',
            name='exec_token',
            field=models.JSONField(null=True),
        ),
    ]
