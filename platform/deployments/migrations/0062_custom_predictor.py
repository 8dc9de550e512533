from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('deployments', '0061_owner_object'),
    ]

    operations = [
        migrations.AddField(
            model_name='revision',
            name='custom',
            field=models.JSONField(db_default=models.Value({}, output_field=models.JSONField()), default=dict),
        ),
    ]
