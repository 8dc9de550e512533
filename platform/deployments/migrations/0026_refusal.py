from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('deployments', '0025_transformer'),
    ]

    operations = [
        migrations.AddField(
            model_name='inferenceservice',
            name='refusal',
            field=models.TextField(blank=True, db_default='', default=''),
        ),
    ]
