from django.db import migrations, models


class Migration(migrations.Migration):
    """Revisions that are there, and those that the release before makes meanwhile, have null: code may connect."""

    dependencies = [
        ('deployments', '0048_series_of_policies'),
    ]

    operations = [
        migrations.AddField(
            model_name='revision',
            name='egress',
            field=models.BooleanField(null=True),
        ),
    ]
