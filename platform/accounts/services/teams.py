"""Changes of teams: members and their roles, owned namespaces and models."""

from datetime import datetime

from django.db import transaction
from django.db.models import ProtectedError, QuerySet

from accounts.domain.roles import DEFAULT_TEAM, Owned, Role
from accounts.models import ApiToken, Membership, Ownership, Team
from accounts.services import audit_record, team_default, user_get_or_create
from common.errors import Conflict, NotFound
from common.identifiers import check_dns_label, check_model_name


def team_query(*, token: ApiToken) -> QuerySet[Team]:
    """Return the teams that the caller belongs to; for administrators of the installation, all."""
    return (
        Team.objects.all() if token.roles.get(DEFAULT_TEAM) is Role.ADMIN else Team.objects.filter(name__in=token.roles)
    )


def team_get(*, name: str) -> Team:
    """Return one team; raises NotFound."""
    team = Team.objects.filter(name=name).first()
    if team is None:
        raise NotFound(f"there is no team {name[:150]!r}; create it with `fairlead teams create`")
    return team


def member_query(*, team: str) -> QuerySet[Membership]:
    """Return the team's members; raises NotFound."""
    return Membership.objects.filter(team=team_get(name=team)).select_related("user")


def owned_query(*, team: str) -> QuerySet[Ownership]:
    """Return what the team owns by name; raises NotFound. The default team also owns everything without an owner."""
    return Ownership.objects.filter(team=team_get(name=team))


@transaction.atomic
def team_create(*, name: str, actor: str, now: datetime) -> Team:
    """Create a team without members; raises Conflict where the name is taken."""
    check_dns_label(name)
    team_default(now=now)
    team, created = Team.objects.get_or_create(name=name, defaults={"created_at": now})
    if not created:
        raise Conflict(f"team {name!r} is there already; choose another name", field="name")
    audit_record(actor=actor, action="team.create", target=f"teams/{name}", now=now, after={"name": name})
    return team


@transaction.atomic
def team_delete(*, name: str, actor: str, now: datetime) -> None:
    """Delete a team with its memberships; raises Conflict while it owns something, and for the default team."""
    team = team_get(name=name)
    if name == DEFAULT_TEAM:
        raise Conflict(f"team {DEFAULT_TEAM} owns what no other team owns; it cannot be deleted")
    if owned := [str(row) for row in team.owned.order_by("kind", "name")[:5]]:
        raise Conflict(f"team {name!r} owns {', '.join(owned)}; give that to another team first")
    members = {row.user.username: row.role for row in team.memberships.select_related("user")}
    try:
        team.delete()
    except ProtectedError as error:
        kept = ", ".join(sorted(map(str, error.protected_objects))[:5])
        stays = "; a team with keys stays, since usage and the audit log name them: remove its members instead"
        raise Conflict(f"team {name!r} has {kept}; delete that first{stays}") from error
    audit_record(
        actor=actor, action="team.delete", target=f"teams/{name}", now=now, before={"name": name, "members": members}
    )


@transaction.atomic
def member_set(*, team: str, username: str, role: Role, actor: str, now: datetime) -> tuple[Membership, bool]:
    """Set the user's role in the team and return the membership, and whether it is new; an unknown user is created."""
    found = team_get(name=team)
    user = user_get_or_create(username=username, default_role=None, actor=actor, now=now)
    before = Membership.objects.filter(team=found, user=user).first()
    if before is not None and before.role == role:
        return before, False
    if before is not None:
        _keep_an_administrator(before)
    row, created = Membership.objects.update_or_create(team=found, user=user, defaults={"role": role})
    audit_record(
        actor=actor,
        action="member.set",
        target=f"teams/{team}/members/{username}",
        now=now,
        before=None if before is None else {"role": before.role},
        after={"role": role.value},
    )
    return row, created


@transaction.atomic
def member_delete(*, team: str, username: str, actor: str, now: datetime) -> None:
    """Remove the user from the team; raises NotFound, and Conflict for the installation's last administrator."""
    row = Membership.objects.filter(team=team_get(name=team), user__username=username).first()
    if row is None:
        raise NotFound(f"user {username[:150]!r} is no member of team {team!r}")
    _keep_an_administrator(row)
    row.delete()
    audit_record(
        actor=actor,
        action="member.delete",
        target=f"teams/{team}/members/{username}",
        now=now,
        before={"role": row.role},
    )


@transaction.atomic
def ownership_set(*, team: str, kind: Owned, name: str, actor: str, now: datetime) -> tuple[Ownership, bool]:
    """Transfer a namespace or model to the team, from any owner; it need not exist yet."""
    found = team_get(name=team)
    (check_dns_label if kind is Owned.NAMESPACE else check_model_name)(name)
    before = Ownership.objects.filter(kind=kind, name=name).select_related("team").first()
    if before is not None and before.team_id == found.pk:
        return before, False
    row, created = Ownership.objects.update_or_create(kind=kind, name=name, defaults={"team": found})
    audit_record(
        actor=actor,
        action="ownership.set",
        target=f"teams/{team}/{kind}s/{name}",
        now=now,
        before={"team": DEFAULT_TEAM if before is None else before.team.name},
        after={"team": team},
    )
    return row, created


@transaction.atomic
def ownership_delete(*, team: str, kind: Owned, name: str, actor: str, now: datetime) -> None:
    """Return a namespace or model to the default team; raises NotFound where the team does not own it."""
    row = Ownership.objects.filter(team=team_get(name=team), kind=kind, name=name).first()
    if row is None:
        raise NotFound(f"team {team!r} does not own the {kind} {name[:150]!r}")
    row.delete()
    audit_record(
        actor=actor,
        action="ownership.delete",
        target=f"teams/{team}/{kind}s/{name}",
        now=now,
        before={"team": team},
        after={"team": DEFAULT_TEAM},
    )


def _keep_an_administrator(row: Membership) -> None:
    """Raise Conflict where no administrator of the installation would remain after `row` changes."""
    if row.team.name != DEFAULT_TEAM or row.role != Role.ADMIN:
        return
    # Locked, in one order, so that two administrators cannot remove each other at the same time.
    admins = Membership.objects.select_for_update().filter(team=row.team, role=Role.ADMIN).order_by("pk")
    if not [other for other in admins if other.pk != row.pk]:
        raise Conflict(
            f"user {row.user.username!r} is the last administrator of the installation; name another one first"
        )
