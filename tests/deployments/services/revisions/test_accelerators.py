"""A service that asks for a GPU, or a slice of one."""

from dataclasses import replace

import pytest
from django.template.loader import render_to_string

from clusters.models import Cluster
from common.errors import Conflict, DoesNotFit, InvalidInput
from deployments import mapping
from deployments.models import InferenceService, Revision
from deployments.services import model_follow, rollout_plan, service_apply
from deployments.services.revisions.gpu_assignment import gpus_due, gpus_look
from events.models import Event
from integrations.clusters.base import Arrangement, NodeGpus, Nodes, Observed, Resources
from registry.models import ModelVersion
from tests.deployments._support.accelerators import apply, measure, name_image, see
from tests.deployments._support.gpu_nodes import LARGE, MIXED, SHARED, SMALL, WHOLE, measured
from tests.deployments._support.platform import Platform

SLICE = "nvidia.com/mig-1g.10gb"


@pytest.fixture
def live(platform: Platform) -> Platform:
    """Give a platform whose service is live on a Kubernetes cluster with an image for GPUs."""
    platform.version(1)
    platform.apply(policy=None)
    name_image("fairlead/serving-runtime:test-cuda")
    platform.until(lambda: platform.view().phase == "Ready")
    return platform


def test_another_slice_is_another_revision(live: Platform) -> None:
    apply(live, **{SLICE: 1})
    live.until(lambda: live.view().stable_revision == "digits-00002")
    desired = live.cluster.applied[-1].revisions[-1]
    assert desired.resources == Resources(accelerator=SLICE)
    apply(live, **{SLICE: 1})
    assert Revision.objects.count() == 2
    apply(live, **{"nvidia.com/mig-3g.40gb": 1})
    asked = [each.accelerator for each in Revision.objects.order_by("number")]
    assert asked == ["", SLICE, "nvidia.com/mig-3g.40gb"]


def test_an_approval_is_for_the_gpu_that_will_run(live: Platform) -> None:
    see(live, MIXED)
    measure(5 << 30)
    live.policy(name="asking", steps=[{"weight": 10, "pause": {"approvals": 1}}, {"weight": 50}])
    document = live.document(policy="asking")
    document["spec"]["predictor"]["model"]["resources"] = {"limits": {WHOLE: "auto"}}
    service_apply(document=document, namespace=None, name=None, actor="ops", now=live.clock())
    row = live.rollout()
    approved = mapping.approval_subject(row, mapping.rollout_state(row)).configuration_digest
    chosen = row.to_revision.placement
    for other in ({**chosen, "accelerator": LARGE}, {**chosen, "products": ["NVIDIA-A30"]}):
        row.to_revision.placement = other
        assert mapping.approval_subject(row, mapping.rollout_state(row)).configuration_digest != approved


def test_without_an_image_for_gpus_nothing_is_made(live: Platform) -> None:
    name_image("")
    with pytest.raises(InvalidInput, match="apply it with gpuRuntimeImage") as caught:
        apply(live, **{SLICE: 1})
    assert caught.value.field == f"spec.predictor.model.resources.limits.{SLICE}"
    assert Revision.objects.count() == 1


def test_replicas_apart_are_another_revision_and_the_way_back_is_in_the_file(live: Platform) -> None:
    document = live.document(policy=None)
    document["spec"]["placement"] = {"replicas": "spread"}
    live.clock.go_on(1.0)
    for _ in range(2):
        service_apply(document=document, namespace=None, name=None, actor="ops", now=live.clock())
        live.until(lambda: live.view().stable_revision == "digits-00002")
    assert live.cluster.applied[-1].revisions[-1].arrangement is Arrangement.SPREAD
    live.back("1")
    assert "placement" not in InferenceService.objects.get().document["spec"]
    live.until(lambda: live.view().stable_revision == "digits-00001")
    live.back("2")
    assert InferenceService.objects.get().document["spec"]["placement"] == {"replicas": "spread"}


def test_left_open_the_least_that_does_is_chosen_and_the_revision_says_why(live: Platform) -> None:
    see(live, MIXED)
    measure(5 << 30)
    apply(live, **{WHOLE: "auto"})
    live.until(lambda: live.view().stable_revision == "digits-00002")
    assert live.cluster.applied[-1].revisions[-1].resources == Resources(accelerator=SMALL)
    (made,) = Event.objects.filter(kind="RevisionCreated", revision="digits-00002").values_list("message", flat=True)
    assert f"on {SMALL}: 5 GiB measured on a CPU" in made
    placement = live.view().revisions[-1].placement
    assert placement is not None
    assert (placement.asked, placement.resource, placement.products) == ("auto", SMALL, ())
    assert placement.why.startswith("5 GiB measured on a CPU")
    page = render_to_string("deployments/_revisions.html", {"service": live.view()})
    assert f"runs on <code>{SMALL}</code>: 5 GiB measured on a CPU" in page
    apply(live, **{WHOLE: "auto"})
    assert Revision.objects.count() == 2


def test_a_slice_is_shared_where_the_file_allows_it(live: Platform) -> None:
    see(live, SHARED)
    measure(1 << 29)
    apply(live, **{WHOLE: "auto"})
    assert Revision.objects.get(number=2).placement["accelerator"] == LARGE
    document = live.document(policy=None)
    document["spec"]["predictor"]["model"]["resources"] = {"limits": {WHOLE: "auto"}}
    document["spec"]["placement"] = {"sharing": True}
    service_apply(document=document, namespace=None, name=None, actor="ops", now=live.clock())
    assert Revision.objects.get(number=3).placement["accelerator"] == f"{SMALL}.shared"
    assert "up to 4 pods share each" in Revision.objects.get(number=3).placement["why"]


def test_a_slice_is_chosen_by_the_latency_that_was_measured_on_it(live: Platform) -> None:
    see(live, MIXED)
    ModelVersion.objects.update(profile=measured(small=5, large=2))
    document = live.document(policy=None)
    document["spec"]["predictor"]["model"]["resources"] = {"limits": {WHOLE: "auto"}}
    document["spec"]["placement"] = {"latency": {"p99Ms": 3}}
    service_apply(document=document, namespace=None, name=None, actor="ops", now=live.clock())
    assert Revision.objects.get(number=2).placement["accelerator"] == LARGE
    assert (
        Revision.objects.get(number=2).placement["why"].endswith("; it took 2 ms there of 3 ms (p99) for a batch of 1")
    )
    document["spec"]["placement"] = {"latency": {"p99Ms": 1}}
    with pytest.raises(DoesNotFit, match=r"it took 2 ms on 3g\.40gb, 5 ms on 1g\.10gb"):
        service_apply(document=document, namespace=None, name=None, actor="ops", now=live.clock())


@pytest.mark.parametrize(
    ("unknown", "memory_bytes", "told"),
    [
        pytest.param("the role is not given", 1, "the role is not given; name one", id="nothing is known of nodes"),
        pytest.param("", None, "was not measured; name one", id="nothing was measured of the version"),
    ],
)
def test_what_cannot_be_chosen_is_to_be_named(
    live: Platform, unknown: str, memory_bytes: int | None, told: str
) -> None:
    see(live, MIXED, unknown=unknown)
    if memory_bytes:
        measure(memory_bytes)
    with pytest.raises(Conflict, match=told):
        apply(live, **{WHOLE: "auto"})
    assert Revision.objects.count() == 1


def test_a_service_that_does_not_fit_says_what_would_make_room_and_nothing_is_made(live: Platform) -> None:
    see(live, replace(MIXED, resources={SMALL: 7}))
    with pytest.raises(DoesNotFit) as caught:
        apply(live, **{LARGE: 1})
    assert caught.value.message == (
        f"service default/digits does not fit on cluster local: room for 1 replica is needed, and no node offers "
        f"{LARGE}, but {SMALL}; with GPU 0 of mixed cut into 4 x 1g.10gb and 1 x 3g.40gb instead of 7 x 1g.10gb, "
        "1 of 1 replicas find a slice; to propose it: fairlead clusters repartition local -f FILE (or "
        "--service default/digits --version 1, for a rollout)"
    )
    assert Revision.objects.count() == 1
    assert "limits" not in str(InferenceService.objects.get().document)


def test_where_gpu_nodes_are_added_it_waits_for_one(live: Platform) -> None:
    name_image("cuda", gpuNodesAutoscaled=True)
    see(live)
    apply(live, **{LARGE: 1})
    assert Revision.objects.get(number=2).placement["why"].endswith("but no GPU at all")


def test_an_alias_is_not_followed_to_what_does_not_fit(live: Platform) -> None:
    see(live, MIXED)
    live.alias(ModelVersion.objects.get(number=1))
    measure(1 << 30)
    document = live.document(uri="models:/digits@champion", policy=None)
    document["spec"]["predictor"]["model"]["resources"] = {"limits": {WHOLE: "auto"}}
    service, _ = service_apply(document=document, namespace=None, name=None, actor="ops", now=live.clock())
    live.until(lambda: live.view().stable_revision == "digits-00002")
    live.alias(live.version(2))
    ModelVersion.objects.filter(number=2).update(profile={"memory_bytes": 100 << 30})
    model_follow(service_id=service.pk, now=live.clock())
    service.refresh_from_db()
    assert "does not fit on cluster local" in service.alias_problem
    assert Revision.objects.count() == 2


def test_a_cluster_is_looked_at_while_services_have_gpus(live: Platform) -> None:
    cluster = Cluster.objects.get()
    assert not gpus_due(cluster, live.clock())
    apply(live, **{SMALL: 1})
    assert gpus_due(cluster, live.clock())
    gpus_look(cluster, lambda _: live.cluster, live.clock())
    cluster.refresh_from_db()
    assert cluster.gpus == {"nodes": [], "unknown": ""}
    assert not gpus_due(cluster, live.clock())
    live.clock.go_on(31.0)
    assert gpus_due(cluster, live.clock())


@pytest.mark.parametrize(
    ("pools", "fits", "told"),
    [
        pytest.param(MIXED, True, "it fits: 1 replica of 4 free", id="there are slices"),
        pytest.param(
            replace(MIXED, resources={LARGE: 2}), False, "with GPU 0 of mixed cut into", id="a cut would make room"
        ),
    ],
)
def test_a_plan_of_a_rollout_looks_for_slices(live: Platform, pools: NodeGpus, fits: bool, told: str) -> None:
    apply(live, **{SMALL: 1})
    live.until(lambda: live.view().stable_revision == "digits-00002")
    live.version(2)
    live.policy()

    def survey(_namespace: str, _name: str) -> tuple[Observed, Nodes]:
        return live.cluster.observe("default", "digits"), Nodes(gpus=(pools,), unknown="")

    wish = {"namespace": "default", "name": "digits", "version": "2", "policy": "careful", "actor": "ops"}
    room = rollout_plan(**wish, now=live.clock(), survey=survey).plan.room  # type: ignore[arg-type]
    assert room is not None
    assert room.fits is fits
    assert told in room.message
