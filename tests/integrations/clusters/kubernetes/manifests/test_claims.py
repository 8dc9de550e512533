"""Claims of GPUs and queues: which pod templates have them, and what goes with a pinned one."""

from dataclasses import replace
from typing import Any

import pytest

from common.errors import InvalidInput
from integrations.clusters.base import QUEUE, Desired, Job, JobKind, PodFields, Resources
from integrations.clusters.kubernetes.manifests import deployments, render
from integrations.clusters.kubernetes.manifests.jobs.job import ASK, job
from integrations.clusters.kubernetes.manifests.workloads.claims import are_used, of_job, with_templates
from integrations.clusters.kubernetes.options import GpuAllocation
from tests.integrations._support.manifests import given

DESIRED, SHARES, OPTIONS = given("claims")
BY_PLUGIN = replace(OPTIONS, gpu_allocation=GpuAllocation.DEVICE_PLUGIN)
WITHOUT_QUEUES = replace(OPTIONS, queue_names=())


def asking(accelerator: str, *products: str) -> Desired:
    resources = Resources(accelerator=accelerator, products=products)
    return replace(DESIRED, revisions=(replace(DESIRED.revisions[0], resources=resources),))


def templates(manifests: list[Any]) -> list[Any]:
    return [each for each in manifests if each["kind"] == "ResourceClaimTemplate"]


def of_kind(kind: str, manifests: list[Any]) -> Any:
    return next(each for each in manifests if each["kind"] == kind)


@pytest.mark.parametrize(
    ("accelerator", "products", "device_class", "expressions"),
    [
        ("nvidia.com/gpu", (), "gpu.nvidia.com", []),
        ("nvidia.com/mig-1g.10gb.me", (), "mig.nvidia.com", ['.profile == "1g.10gb+me"']),
        (
            "nvidia.com/gpu",
            ("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb",),
            "mig.nvidia.com",
            ['"1g.5gb"', '["NVIDIA-A100-SXM4-40GB"]'],
        ),
        ("nvidia.com/gpu", ("NVIDIA-L4", "NVIDIA-A30"), "gpu.nvidia.com", ['in ["NVIDIA-A30", "NVIDIA-L4"]']),
    ],
)
def test_a_claim_is_for_what_was_chosen(
    accelerator: str, products: tuple[str, ...], device_class: str, expressions: list[str]
) -> None:
    (found,) = templates(render(asking(accelerator, *products), SHARES, OPTIONS))
    (request,) = found["spec"]["spec"]["devices"]["requests"]
    assert (request["exactly"]["deviceClassName"], request["exactly"]["count"]) == (device_class, 1)
    selectors = [each["cel"]["expression"] for each in request["exactly"].get("selectors", [])]
    assert len(selectors) == len(expressions)
    assert all(expected in selector for expected, selector in zip(expressions, selectors, strict=True))


def test_shared_resources_are_the_device_plugins() -> None:
    shared = asking("nvidia.com/mig-1g.10gb.shared")
    with pytest.raises(InvalidInput, match=r"each replica has its own; request nvidia.com/mig-1g.10gb$"):
        render(shared, SHARES, OPTIONS)
    assert templates(render(shared, SHARES, BY_PLUGIN)) == []


def test_a_revision_without_a_gpu_claims_nothing() -> None:
    plain = asking("")
    found = render(plain, SHARES, OPTIONS)
    assert templates(found) == []
    assert not are_used(plain, OPTIONS)
    assert "resourceClaims" not in of_kind("Deployment", found)["spec"]["template"]["spec"]


@pytest.mark.parametrize(("before", "after", "count"), [(OPTIONS, BY_PLUGIN, 1), (BY_PLUGIN, OPTIONS, 0)])
def test_a_pinned_revision_keeps_its_way_to_the_gpu(before: Any, after: Any, count: int) -> None:
    desired = asking("nvidia.com/gpu")
    (deployment,) = deployments(desired, before)
    template = deployment["spec"]["template"]
    pinned = replace(desired.revisions[0], pod_templates={deployment["metadata"]["name"]: template})
    desired = replace(desired, revisions=(pinned,))
    found = render(desired, SHARES, after)
    assert of_kind("Deployment", found)["spec"]["template"]["spec"] == template["spec"]
    assert len(templates(found)) == count
    assert are_used(desired, BY_PLUGIN) == bool(count)


def test_a_template_that_the_cluster_keeps_decides_too() -> None:
    """A revision that serves, and whose template is not recorded yet, keeps the one on the cluster."""
    desired = asking("nvidia.com/gpu")
    (kept,) = deployments(desired, BY_PLUGIN)
    rendered = render(desired, SHARES, OPTIONS)
    changed = [kept if each["kind"] == "Deployment" else each for each in rendered]
    assert templates(with_templates(desired, changed)) == []
    assert with_templates(desired, rendered) == rendered


def test_a_job_owns_the_template_that_its_pod_claims_from() -> None:
    asked = Job(JobKind.BUILD, "file:///var/lib/fairlead/artifacts/x", 60, "sha256:aaaa", "s3://models/digits/")
    asked = replace(asked, resources=Resources(accelerator="nvidia.com/mig-1g.10gb"))
    made = job(asked, "ask", OPTIONS)
    made["metadata"]["uid"] = "7"
    (found,) = of_job(made, asked.resources)
    assert found["metadata"]["name"] == "ask"
    assert found["metadata"]["ownerReferences"] == [
        {"apiVersion": "batch/v1", "kind": "Job", "name": "ask", "uid": "7"}
    ]
    pod = made["spec"]["template"]["spec"]
    steps = {each["name"]: each["resources"] for each in (*pod["initContainers"], *pod["containers"])}
    assert [name for name, its in steps.items() if its.get("claims")] == [ASK]
    assert pod["resourceClaims"] == [{"name": "gpu", "resourceClaimTemplateName": "ask"}]
    assert of_job(job(asked, "ask", BY_PLUGIN), asked.resources) == []


def test_a_cpu_limit_leaves_the_claim() -> None:
    desired = asking("nvidia.com/gpu")
    limited = replace(desired, revisions=(replace(desired.revisions[0], pod=PodFields(cpu_limit=2)),))
    container = of_kind("Deployment", render(limited, SHARES, OPTIONS))["spec"]["template"]["spec"]["containers"][0]
    assert container["resources"]["claims"] == [{"name": "gpu"}]
    assert container["resources"]["limits"]["cpu"] == "2"


def test_a_deployment_has_the_queue_of_its_pod_template() -> None:
    before = deployments(DESIRED, WITHOUT_QUEUES)[0]
    name = before["metadata"]["name"]
    pinned = replace(DESIRED.revisions[0], pod_templates={name: before["spec"]["template"]})
    for desired, queue in ((DESIRED, "models"), (replace(DESIRED, revisions=(pinned,)), None)):
        found = next(each for each in deployments(desired, OPTIONS) if each["metadata"]["name"] == name)
        assert found["metadata"]["labels"].get(QUEUE) == queue
        assert found["spec"]["template"]["metadata"]["labels"].get(QUEUE) == queue


def test_pods_of_jobs_and_companions_wait_in_the_first_queue() -> None:
    asked = Job(JobKind.INSPECT, "file:///var/lib/fairlead/artifacts/x", 60, "sha256:aaaa", "s3://models/digits/")
    assert job(asked, "ask", OPTIONS)["metadata"]["labels"][QUEUE] == "models"
    assert QUEUE not in job(asked, "ask", WITHOUT_QUEUES)["metadata"]["labels"]
    desired, _, options = given("transformer")
    found = deployments(desired, replace(options, queue_names=("models",)))
    assert {each["spec"]["template"]["metadata"]["labels"][QUEUE] for each in found} == {"models"}
    assert not [each for each in deployments(desired, options) if QUEUE in each["metadata"]["labels"]]
