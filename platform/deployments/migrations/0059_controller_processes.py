from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('deployments', '0058_traffic_of_objectives'),
    ]

    operations = [
        migrations.CreateModel(
            name='ControllerProcess',
            fields=[
                ('name', models.CharField(max_length=32, primary_key=True, serialize=False)),
                ('seen_at', models.DateTimeField()),
            ],
        ),
    ]
