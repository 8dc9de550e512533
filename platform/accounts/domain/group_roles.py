"""Group-to-role mapping of an OpenID provider. Pure.

Written `GROUP=TEAM:ROLE`, separated by commas, such as `ml-admins=default:admin,vision=vision:deployer`.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from accounts.domain.roles import Role
from common.errors import InvalidInput
from common.identifiers import check_dns_label


@dataclass(frozen=True, slots=True)
class GroupRole:
    """Members of `group` at the provider have `role` in `team`."""

    group: str
    team: str
    role: Role


def parse(texts: Iterable[str]) -> tuple[GroupRole, ...]:
    """Return the rules; raises InvalidInput for the first invalid one."""
    return tuple(_parse_one(text) for text in texts)


def _parse_one(text: str) -> GroupRole:
    group, _, given = text.rpartition("=")
    team, _, role = given.partition(":")
    if not group or role not in [*Role]:
        raise InvalidInput(f"{text[:80]!r} is not GROUP=TEAM:ROLE with a role out of {', '.join(Role)}")
    check_dns_label(team)
    return GroupRole(group, team, Role(role))


def roles_of(groups: frozenset[str], rules: Iterable[GroupRole]) -> dict[str, Role | None]:
    """Return the role in each team of the rules, the widest of several groups; None for no role."""
    found: dict[str, Role | None] = {}
    for rule in rules:
        given = rule.role if rule.group in groups else None
        found[rule.team] = max(filter(None, [found.get(rule.team), given]), key=list(Role).index, default=None)
    return found
