import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('custom_resources', '0001_initial'),
        ('registry', '0013_check_begun'),
    ]

    operations = [
        migrations.AddField(
            model_name='resourceobject',
            name='model_import',
            field=models.ForeignKey(db_constraint=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='registry.modelimport'),
        ),
        migrations.AddField(
            model_name='resourceobject',
            name='model_version',
            field=models.ForeignKey(db_constraint=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='registry.modelversion'),
        ),
    ]
