from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('custom_resources', '0002_model_import'),
    ]

    operations = [
        migrations.AddField(
            model_name='resourceobject',
            name='last_action',
            field=models.JSONField(null=True),
        ),
    ]
