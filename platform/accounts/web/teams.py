"""Team pages: members and their roles, owned namespaces and models, demands, and forms to change them."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts.auth.access import Place, may, require
from accounts.auth.permissions import page_actor, page_scope, page_token
from accounts.domain.demand import MOST_APPROVALS, Demand
from accounts.domain.quota import MOST_BYTES, MOST_VERSIONS, Quota
from accounts.domain.roles import DEFAULT_TEAM, Owned, Role
from accounts.domain.scopes import Scope
from accounts.selectors import owning_team
from accounts.selectors.demands import demands_within
from accounts.services import teams
from accounts.services.demands import namespace_demand_set, team_demand_set
from accounts.services.quotas import quota_and_usage, quota_set
from common.errors import InvalidInput
from common.http.error_pages import leave
from common.http.form_fields import whole_number
from integrations.clusters.base import MOST_PER_SECOND, MOST_ROWS_PER_MINUTE

_ROLES = {
    Role.VIEWER: "sees models, services and rollouts",
    Role.DEPLOYER: "changes them as well",
    Role.ADMIN: "also says who belongs to the team, and manages its access keys and webhooks",
}


@never_cache
@require_safe
@page_scope(Scope.READ)
def team_list_page(request: HttpRequest) -> HttpResponse:
    """Show the teams that the caller belongs to; to administrators of the installation, all."""
    token = page_token(request)
    rows = teams.team_query(token=token).prefetch_related("memberships", "owned").order_by("name")
    context = {"teams": rows, "own_roles": token.roles, "may_make": may(token, Scope.ADMIN, Place.installation())}
    return render(request, "accounts/team_list.html", context)


@require_POST
@page_scope(Scope.ADMIN)
def team_create_action(request: HttpRequest) -> HttpResponse:
    """Create a team and redirect to its page."""
    require(page_token(request), Scope.ADMIN, Place.installation())
    team = teams.team_create(name=request.POST.get("name", ""), actor=page_actor(request), now=timezone.now())
    messages.success(request, f"Team {team} is created; now add members.")
    return leave(request, "accounts:team-detail", team.name)


@never_cache
@require_safe
@page_scope(Scope.READ)
def team_detail_page(request: HttpRequest, team: str) -> HttpResponse:
    """Show a team's members and what it owns, with forms for users who may change that."""
    token = page_token(request)
    require(token, Scope.READ, Place.team(team))
    found = teams.team_get(name=team)
    context = {
        "team": found,
        "members": teams.member_query(team=team).order_by("user__username"),
        "owned": teams.owned_query(team=team).order_by("kind", "name"),
        "is_default": team == DEFAULT_TEAM,
        "roles": [(role.value, meaning) for role, meaning in _ROLES.items()],
        "kinds": [kind.value for kind in Owned],
        "demands": demands_within(team=team),
        "quota": quota_and_usage(found),
        "may_manage": may(token, Scope.ADMIN, Place.team(team)),
        "most_approvals": MOST_APPROVALS,
        "may_give": may(token, Scope.ADMIN, Place.installation()),
    }
    return render(request, "accounts/team_detail.html", context)


@require_POST
@page_scope(Scope.ADMIN)
def team_delete_action(request: HttpRequest, team: str) -> HttpResponse:
    """Delete a team that owns nothing."""
    require(page_token(request), Scope.ADMIN, Place.installation())
    teams.team_delete(name=team, actor=page_actor(request), now=timezone.now())
    messages.success(request, f"Team {team} is deleted.")
    return leave(request, "accounts:team-list")


@require_POST
@page_scope(Scope.ADMIN)
def quota_action(request: HttpRequest, team: str) -> HttpResponse:
    """Set the quota of the team; an empty field is no limit."""
    require(page_token(request), Scope.ADMIN, Place.installation())
    quota = Quota(
        whole_number(request, "max_versions", most=MOST_VERSIONS),
        whole_number(request, "max_bytes", most=MOST_BYTES),
        whole_number(request, "requests_per_second", least=1, most=MOST_PER_SECOND),
        whole_number(request, "rows_per_minute", least=1, most=MOST_ROWS_PER_MINUTE),
    )
    quota_set(team=team, quota=quota, actor=page_actor(request), now=timezone.now())
    messages.success(request, "Saved.")
    return leave(request, "accounts:team-detail", team)


@require_POST
@page_scope(Scope.ADMIN)
def member_set_action(request: HttpRequest, team: str) -> HttpResponse:
    """Set a user's role in the team."""
    require(page_token(request), Scope.ADMIN, Place.team(team))
    user, asked = request.POST.get("user", "").strip(), request.POST.get("role", "")
    if asked not in [*Role]:
        raise InvalidInput(f"role is {asked[:40]!r}; expected one of {', '.join(Role)}", field="role")
    teams.member_set(team=team, username=user, role=Role(asked), actor=page_actor(request), now=timezone.now())
    messages.success(request, f"{user} is {asked} of {team} now.")
    return leave(request, "accounts:team-detail", team)


@require_POST
@page_scope(Scope.ADMIN)
def member_delete_action(request: HttpRequest, team: str) -> HttpResponse:
    """Remove a user from the team."""
    require(page_token(request), Scope.ADMIN, Place.team(team))
    user = request.POST.get("user", "")
    teams.member_delete(team=team, username=user, actor=page_actor(request), now=timezone.now())
    messages.success(request, f"{user} is no longer a member of {team}.")
    return leave(request, "accounts:team-detail", team)


@require_POST
@page_scope(Scope.ADMIN)
def ownership_action(request: HttpRequest, team: str, verb: str) -> HttpResponse:
    """Transfer a namespace or model to the team, or return it."""
    require(page_token(request), Scope.ADMIN, Place.installation())
    kind, name = request.POST.get("kind", ""), request.POST.get("name", "").strip()
    if kind not in [*Owned]:
        raise InvalidInput(f"kind is {kind[:40]!r}; expected one of {', '.join(Owned)}", field="kind")
    change = teams.ownership_set if verb == "give" else teams.ownership_delete
    change(team=team, kind=Owned(kind), name=name, actor=page_actor(request), now=timezone.now())
    messages.success(request, f"The {kind} {name} belongs to {team if verb == 'give' else DEFAULT_TEAM} now.")
    return leave(request, "accounts:team-detail", team)


@require_POST
@page_scope(Scope.ADMIN)
def demand_action(request: HttpRequest, team: str) -> HttpResponse:
    """Set what the team or one of its namespaces demands, by the form; without values, lift it."""
    token, namespace = page_token(request), request.POST.get("namespace", "").strip()
    require(token, Scope.ADMIN, Place.team(team))
    who: dict[str, Any] = {"actor": page_actor(request), "now": timezone.now()}
    demand = Demand(
        f"namespace {namespace}" if namespace else f"team {team}",
        tuple(dict.fromkeys(request.POST.get("policies", "").replace(",", " ").split())),
        _number(request.POST.get("approvals", "")),
        bool(request.POST.get("signed_in")),
        bool(request.POST.get("digests")),
    )
    if namespace:
        require(token, Scope.ADMIN, Place.namespace(namespace))
        if owning_team(kind=Owned.NAMESPACE, name=namespace) != team:
            raise InvalidInput(f"namespace {namespace[:63]} is not one of team {team}", field="namespace")
        namespace_demand_set(namespace=namespace, demand=demand, **who)
    else:
        team_demand_set(team=team, demand=demand, **who)
    messages.success(request, f"The {demand.of} demands {demand} now.")
    return leave(request, "accounts:team-detail", team)


def _number(text: str) -> int:
    text = text.strip() or "0"
    if not (text.isascii() and text.isdecimal() and len(text) < 4):
        raise InvalidInput(f"approvals is {text[:20]!r}; expected a number of people", field="approvals")
    return int(text)
