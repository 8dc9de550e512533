import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('deployments', '0008_autoscaling'),
        ('registry', '0003_imports'),
    ]

    operations = [
        migrations.AddField(
            model_name='inferenceservice',
            name='awaited_import',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='registry.modelimport'),
        ),
        migrations.AddField(
            model_name='inferenceservice',
            name='import_note',
            field=models.TextField(blank=True),
        ),
        migrations.AlterField(
            model_name='inferenceservice',
            name='model_version',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='registry.modelversion'),
        ),
    ]
