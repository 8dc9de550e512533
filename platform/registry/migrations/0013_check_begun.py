"""When the last check of a version began, by which teams take turns; null in the rows of the release before."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("registry", "0012_kept_rules"),
    ]

    operations = [
        migrations.AddField(
            model_name="modelversion",
            name="check_begun_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddIndex(
            model_name="modelversion",
            index=models.Index(
                condition=models.Q(("check_begun_at__isnull", False)), fields=["check_begun_at"], name="version_check_begun"
            ),
        ),
    ]
