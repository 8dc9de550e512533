from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('access', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='TokenIssuer',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=63, unique=True)),
                ('issuer', models.CharField(max_length=500)),
                ('audience', models.CharField(max_length=200)),
                ('public', models.JSONField()),
                ('are_given', models.BooleanField()),
                ('fetched_at', models.DateTimeField()),
                ('failure', models.CharField(db_default='', default='', max_length=500)),
                ('created_at', models.DateTimeField()),
                ('created_by', models.CharField(max_length=300)),
            ],
        ),
    ]
