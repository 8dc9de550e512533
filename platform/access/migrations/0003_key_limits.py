from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('access', '0002_token_issuer'),
    ]

    operations = [
        migrations.AddField(
            model_name='accesskey',
            name='requests_per_second',
            field=models.PositiveIntegerField(null=True),
        ),
    ]
