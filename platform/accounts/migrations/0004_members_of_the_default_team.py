from django.db import migrations
from django.utils import timezone


def everybody_as_before(apps, schema_editor):
    """Make who was there an admin of the default team: only the scopes of their tokens limited them, and still do."""
    Team, User = apps.get_model("accounts", "Team"), apps.get_model("accounts", "User")
    Membership = apps.get_model("accounts", "Membership")
    default, _ = Team.objects.get_or_create(name="default", defaults={"created_at": timezone.now()})
    Membership.objects.bulk_create(Membership(team=default, user=user, role="admin") for user in User.objects.all())


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0003_teams'),
    ]

    operations = [
        migrations.RunPython(everybody_as_before, migrations.RunPython.noop),
    ]
