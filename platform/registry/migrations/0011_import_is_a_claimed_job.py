"""An import is a claimed job as builds and trials are: the columns are the same, and no statement runs."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('registry', '0010_of_installation'),
    ]

    operations = [
        migrations.AlterField(
            model_name='modelimport',
            name='claim',
            field=models.UUIDField(null=True),
        ),
        migrations.AlterField(
            model_name='modelimport',
            name='finished_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.AlterField(
            model_name='modelimport',
            name='next_try_at',
            field=models.DateTimeField(null=True),
        ),
    ]
