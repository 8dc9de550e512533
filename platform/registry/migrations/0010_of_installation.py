"""Whether a version was REJECTED for what the installation lacks, which pushing its files again has checked again."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('registry', '0009_by_decision'),
    ]

    operations = [
        migrations.AddField(
            model_name='modelversion',
            name='of_installation',
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
