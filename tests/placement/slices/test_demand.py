"""What slices are asked for, and how much of it finds none."""

import pytest

from common.errors import InvalidInput
from placement.gpu_nodes import MigNode, Tenant
from placement.repartition.proposal import repartition
from placement.slices.demand import demand_json, parse_wanted, stored_demand, unserved
from placement.slices.slice_types import Demand

_NODE = MigNode("a", "H100-80GB", 1, {"1g.10gb": 4, "3g.40gb": 1}, {})


@pytest.mark.parametrize(
    ("text", "demand"),
    [
        ("2 x 3g.40gb", Demand("2 x 3g.40gb", 2, 0, profile="3g.40gb")),
        ("3g.40gb", Demand("1 x 3g.40gb", 1, 0, profile="3g.40gb")),
        (" 12x1g.10gb ", Demand("12 x 1g.10gb", 12, 0, profile="1g.10gb")),
        ("3 x 30Gi", Demand("3 x 30Gi", 3, 30 << 30)),
    ],
)
def test_slices_are_asked_for_by_profile_or_by_memory(text: str, demand: Demand) -> None:
    assert parse_wanted(text, "demands[0]") == demand
    assert stored_demand(demand_json(demand)) == demand


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "says no slices"),
        ("0 x 3g.40gb", "says no slices"),
        ("1001 x 3g.40gb", "up to 1000 of them"),
        ("two x 3g.40gb", "says no slices"),
        ("1 x 5g.11gb", "no GPU has a MIG profile 5g.11gb; known are"),
        ("1 x large", "512Mi"),
    ],
)
def test_what_says_no_slices_is_refused_by_its_field(text: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=told) as caught:
        parse_wanted(text, "demands[0]")
    assert caught.value.field == "demands[0]"


def test_what_is_free_serves_first_and_is_promised_then() -> None:
    wanted = [parse_wanted("2 x 3g.40gb", ""), parse_wanted("1 x 1g.10gb", "")]
    missing, (node,) = unserved(wanted, [_NODE])
    assert [(each.name, each.replicas) for each in missing] == [("2 x 3g.40gb", 1)]
    assert node.taken == {"3g.40gb": 1, "1g.10gb": 1}
    assert [tenant.pod for tenant in node.tenants] == ["", ""]
    assert repartition(missing, [node]) is None  # two of 3g.40gb leave no room for the small one that was promised
    assert unserved(wanted[1:], [_NODE])[0] == []


def test_nothing_of_a_node_that_takes_no_pods_serves() -> None:
    closed = MigNode("a", "H100-80GB", 1, {"1g.10gb": 7}, {}, (Tenant("default/x", None),), "is cordoned")
    missing, nodes = unserved([parse_wanted("1g.10gb", "")], [closed])
    assert [each.replicas for each in missing] == [1]
    assert nodes == (closed,)
