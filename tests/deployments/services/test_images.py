"""Images of transformers: refused at apply and in its dry run where the installation does not allow them."""

import copy

import pytest
from pytest_django.fixtures import Settings

from accounts.domain.demand import Demand
from accounts.services.demands import namespace_demand_set
from clusters.models import Cluster
from common.errors import Conflict, InvalidInput
from deployments.models import InferenceService
from deployments.services import service_apply, service_plan
from tests.deployments._support.cluster_files import CLUSTER
from tests.deployments._support.platform import Platform


def apply(platform: Platform, image: str, *, dry: bool = False) -> None:
    document = copy.deepcopy(platform.document(policy=None))
    document["spec"]["transformer"] = {"containers": [{"image": image}]}
    platform.clock.go_on(1.0)
    which = service_plan if dry else service_apply
    which(document=document, namespace=None, name=None, actor="alice", now=platform.clock())


@pytest.fixture
def strict(platform: Platform, settings: Settings) -> Platform:
    """Give a platform on Kubernetes that allows images of one registry."""
    platform.version(1)
    document = platform.document(policy=None)
    service_apply(document=document, namespace=None, name=None, actor="alice", now=platform.clock())
    Cluster.objects.update(kind="kubernetes", document={**CLUSTER, "name": "local"})
    settings.ALLOWED_REGISTRIES = ("registry.example.com",)
    return platform


@pytest.mark.parametrize("dry", [True, False], ids=["dry run", "apply"])
def test_an_image_of_another_registry_is_refused(strict: Platform, dry: bool) -> None:
    with pytest.raises(InvalidInput) as refused:
        apply(strict, "registry.example.com.evil.com/x", dry=dry)
    assert refused.value.field == "spec.transformer.containers[0].image"
    assert "allows those of registry.example.com; use one of these, or have an administrator" in refused.value.message
    assert "transformer" not in InferenceService.objects.get().document["spec"]
    apply(strict, "registry.example.com/x", dry=dry)


def test_a_transformer_that_is_there_stays_as_it_is_where_the_list_gets_shorter(
    strict: Platform, settings: Settings
) -> None:
    apply(strict, "registry.example.com/x:1")
    settings.ALLOWED_REGISTRIES = ("docker.io/fairlead",)
    apply(strict, "registry.example.com/x:1")
    with pytest.raises(InvalidInput, match="FAIRLEAD_ALLOWED_REGISTRIES"):
        apply(strict, "registry.example.com/x:2")


def test_a_namespace_may_demand_images_by_their_digest(strict: Platform) -> None:
    apply(strict, "registry.example.com/x:1")
    demand = Demand("namespace default", digests=True)
    namespace_demand_set(namespace="default", demand=demand, actor="ruth", now=strict.clock())
    apply(strict, "registry.example.com/x:1")  # what serves goes on
    with pytest.raises(Conflict) as refused:
        apply(strict, "registry.example.com/x:2", dry=True)
    assert refused.value.message == (
        "namespace default demands images by their digest, and spec.transformer.containers[0].image is "
        "'registry.example.com/x:2'; name it as REPOSITORY@sha256:…, which a registry shows at a push"
    )
    apply(strict, f"registry.example.com/x@sha256:{1:064}")
    apply(strict, f"registry.example.com/x:2@sha256:{2:064}")
