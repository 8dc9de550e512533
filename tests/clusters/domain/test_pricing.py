"""What a thousand inferences cost."""

import pytest
from django.utils import timezone

from clusters.domain.pricing import Prices, Used, cost_of, saved_by
from clusters.models import Cluster
from deployments.models import Revision
from deployments.selectors import service_cost, service_get
from deployments.selectors.traffic.costs import resources_used
from tests import scenes

SLICE = "nvidia.com/mig-1g.10gb"
PRICES = Prices("EUR", {"replica": 0.1, SLICE: 0.5})


def test_every_replica_costs_its_hours_and_all_requests_share_them() -> None:
    used = [Used(SLICE, 7200.0, 30_000), Used("", 3600.0, 10_000)]
    cost = cost_of(used, PRICES, "the last hour")
    assert cost.per_thousand == pytest.approx((2 * 0.5 + 0.1) / 40)
    assert cost.why == f"the last hour: 1 h of replica at 0.1 EUR, 2 h of {SLICE} at 0.5 EUR, for 40,000 requests"


def test_a_free_replica_costs_nothing() -> None:
    assert cost_of([Used("", 60.0, 5)], Prices("EUR", {"replica": 0.0}), "the last hour").per_thousand == 0


@pytest.mark.parametrize(
    ("used", "why"),
    [
        pytest.param([], "no replica was seen in the last hour", id="nobody looked"),
        pytest.param([Used("", 60.0, 0)], "no request came in the last hour", id="no request"),
        pytest.param(
            [Used("nvidia.com/gpu", 60.0, 5), Used("", 60.0, 5)],
            "no hourly price is set for nvidia.com/gpu on this cluster",
            id="a price is missing",
        ),
    ],
)
def test_what_is_not_known_is_said_and_not_guessed(used: list[Used], why: str) -> None:
    cost = cost_of(used, PRICES, "the last hour")
    assert (cost.per_thousand, cost.why) == (None, why)


def test_what_none_ran_saved_has_the_price_of_what_would_have_run() -> None:
    prices = Prices("EUR", {"replica": 0.5, SLICE: 2.0})
    assert (saved_by(3, "", prices), saved_by(3, SLICE, prices)) == (1.5, 6.0)
    assert saved_by(3, "nvidia.com/gpu", prices) is None
    assert saved_by(3, "", Prices()) is None


@pytest.mark.django_db
def test_a_service_is_priced_by_the_slice_that_was_chosen_for_it() -> None:
    row = scenes.service()
    placement = {"accelerator": SLICE, "products": [], "why": "the least that holds it"}
    Revision.objects.filter(service=row).update(accelerator="auto", placement=placement)
    Cluster.objects.update(prices={"currency": "EUR", "per_hour": {SLICE: 0.6}})
    scenes.traffic(row, *[100.0] * 4)

    found = service_cost(service=service_get(namespace="default", name="digits"), now=timezone.now())

    assert found.per_thousand == pytest.approx(0.6 * 60 / 3600 / 6)
    assert resources_used(Cluster.objects.get()) == [SLICE]
