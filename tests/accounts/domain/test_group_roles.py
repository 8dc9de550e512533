"""Which roles the groups of a provider give."""

import pytest

from accounts.domain.group_roles import parse, roles_of
from accounts.domain.roles import Role
from common.errors import InvalidInput

RULES = parse(["ops=default:admin", "staff=default:viewer", "vision=vision:deployer"])


@pytest.mark.parametrize(
    ("groups", "roles"),
    [
        pytest.param(set(), {"default": None, "vision": None}, id="no group, no role"),
        pytest.param({"staff"}, {"default": Role.VIEWER, "vision": None}, id="one group"),
        pytest.param({"staff", "ops"}, {"default": Role.ADMIN, "vision": None}, id="the widest of several"),
        pytest.param({"chess"}, {"default": None, "vision": None}, id="a group that means nothing"),
    ],
)
def test_groups_give_the_widest_role_in_each_team_of_the_rules(groups: set[str], roles: dict[str, Role | None]) -> None:
    assert roles_of(frozenset(groups), RULES) == roles
    assert roles_of(frozenset(groups), reversed(RULES)) == roles


@pytest.mark.parametrize("text", ["ops", "ops=default", "=default:admin", "ops=default:king", "ops=Default Team:admin"])
def test_a_rule_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse([text])


def test_a_groups_name_may_have_an_equals_sign() -> None:
    (rule,) = parse(["cn=ops=default:admin"])
    assert rule.group == "cn=ops"
