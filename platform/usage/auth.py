"""Who may see and set budgets.

Budgets of teams are what the installation grants: its administrators set them. A key's and a service's are, like their
limits, for the administrators of the team that owns the key or the namespace.
"""

from accounts.auth.access import Place
from usage.domain.budget import Owner, OwnerKind
from usage.selectors.budgets import team_of_key


def place_to_see(owner: Owner) -> Place:
    """Return where a role is needed to see the budget of an owner; raises NotFound where there is no such key."""
    if owner.kind is OwnerKind.SERVICE:
        return Place.namespace(owner.name.partition("/")[0])
    return Place.team(owner.name if owner.kind is OwnerKind.TEAM else team_of_key(owner.name))


def place_to_set(owner: Owner) -> Place:
    """Return where the role of an administrator is needed to set it; raises NotFound where there is no such key."""
    return Place.installation() if owner.kind is OwnerKind.TEAM else place_to_see(owner)
