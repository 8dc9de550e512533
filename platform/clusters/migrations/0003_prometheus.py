from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('clusters', '0002_unseen'),
    ]

    operations = [
        migrations.AddField(
            model_name='cluster',
            name='prometheus_token',
            field=models.TextField(blank=True, db_default='', default=''),
        ),
    ]
