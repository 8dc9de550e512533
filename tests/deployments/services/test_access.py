"""Who may call a service: the installation's default for new ones, what a file leaves, and pages of other origins."""

from typing import Any

import pytest
from pytest_django.fixtures import Settings

from accounts.models import Team
from clusters.models import Cluster
from common.errors import InvalidInput, NotPermitted
from deployments.domain.service_file import stored_access, stored_cors
from deployments.mapping import service_state
from deployments.models import InferenceService
from deployments.selectors.services import guarded_namespaces
from deployments.services import access_by_default, service_apply, service_plan
from integrations.clusters.base import Access, Cors
from tests.deployments._support.fakes import FakeCluster
from tests.deployments._support.platform import Platform


def apply(platform: Platform, access: Any = None) -> InferenceService:
    document = platform.document()
    if access is not None:
        document["spec"]["access"] = access
    service, _ = service_apply(document=document, namespace=None, name=None, actor="alice", now=platform.clock())
    return service


@pytest.mark.parametrize(("default", "callers"), [("public", None), ("authenticated", Access())])
def test_a_new_service_follows_the_installation(
    platform: Platform, settings: Settings, default: str, callers: Access | None
) -> None:
    settings.DEFAULT_ACCESS = default
    platform.version(1)
    platform.policy()
    assert stored_access(apply(platform).access).callers == callers


def test_a_file_without_it_changes_nothing(platform: Platform, settings: Settings) -> None:
    settings.DEFAULT_ACCESS = "authenticated"
    platform.version(1)
    platform.policy()
    apply(platform, {"keys": ["ci"]})
    assert apply(platform).access == {"keys": ["ci"]}
    InferenceService.objects.update(access=None)  # as before there were policies
    platform.version(2)
    again = platform.apply(uri="models:/digits/2")
    assert again.access is None


def test_a_dry_run_warns_of_what_a_file_leaves_out_and_of_names_that_are_not_there(platform: Platform) -> None:
    platform.version(1)
    Team.objects.create(name="fraud", created_at=platform.clock())

    def warned(**fields: Any) -> list[str]:
        document = platform.document(policy=None)
        document["spec"] |= fields
        planned = service_plan(document=document, namespace=None, name=None, actor="alice", now=platform.clock())
        planned.carry_out()
        return list(planned.plan.warnings)

    assert warned(access={"teams": ["fraud", "fruad"], "keys": ["ci"]}, limits={"requestsPerSecond": 5}) == [
        "spec.access.teams names fruad, which this installation does not have"
    ]
    assert warned() == [
        "spec.access is left out, so the service keeps its callers",
        "spec.limits is left out, so the service keeps its limits; write limits: {} to end them",
    ]
    assert warned() == []
    assert warned(access={"users": ["mallory"]}) == [
        "spec.access.users names mallory, which this installation does not have"
    ]
    assert warned(access="authenticated") == []
    assert warned() == ["spec.access is left out, so the service keeps authenticated"]


def test_namespaces_of_guarded_services_get_keys_and_no_others(platform: Platform) -> None:
    platform.version(1)
    platform.policy()
    service = apply(platform, "authenticated")
    assert guarded_namespaces(service.cluster) == [service.namespace]
    apply(platform, {"teams": ["fraud"]})
    assert guarded_namespaces(service.cluster) == [service.namespace]
    apply(platform, "public")
    assert guarded_namespaces(service.cluster) == []
    InferenceService.objects.update(access=None)  # as before there were policies
    assert guarded_namespaces(service.cluster) == []


def test_kubernetes_refuses_tokens_of_issuers_by_name(platform: Platform) -> None:
    platform.version(1)
    platform.policy()
    Cluster.objects.update_or_create(name="local", defaults={"kind": "kubernetes", "created_at": platform.clock()})
    with pytest.raises(InvalidInput, match=r"spec\.access\.subjects cannot be honoured on Kubernetes yet"):
        apply(platform, {"subjects": ["corp:alice"]})


def test_pages_of_other_origins_call_it_as_its_file_says_and_all_of_them_only_a_public_one(platform: Platform) -> None:
    platform.version(1)
    platform.policy()

    def applied(cors: Any, access: Any) -> InferenceService:
        document = platform.document()
        document["spec"] |= {"access": access} | ({} if cors is None else {"cors": cors})
        service, _ = service_apply(document=document, namespace=None, name=None, actor="alice", now=platform.clock())
        return service

    named = applied({"origins": ["https://app.example.com"]}, "authenticated")
    assert service_state(named, (), None).cors == Cors(("https://app.example.com",))
    with pytest.raises(InvalidInput, match="the service is not public"):
        applied({"origins": ["*"]}, "authenticated")
    assert stored_cors(applied({"origins": ["*"]}, "public").cors) == Cors(("*",))
    with pytest.raises(InvalidInput, match="the service is not public"):
        applied({"origins": ["*"]}, {"keys": ["ci"]})
    assert applied(None, "authenticated").cors is None, "a file without origins closes the service to other pages"


class Unasked(FakeCluster):
    """A cluster whose role does not let the driver read Gateways."""

    def checks_callers(self, namespace: str) -> bool:
        raise NotPermitted(f"Kubernetes refused GET gateways for {namespace}")


def test_a_new_service_on_kubernetes_follows_the_installation_where_its_gateway_checks_callers(
    platform: Platform, settings: Settings
) -> None:
    platform.version(1)
    platform.policy()
    Cluster.objects.update_or_create(name="local", defaults={"kind": "kubernetes", "created_at": platform.clock()})
    cluster, driver, document = Cluster.objects.get(), FakeCluster(), platform.document()

    def by_default() -> str | None:
        named: Any = {"document": document, "namespace": "default", "name": "digits"}
        return access_by_default(**named, cluster=cluster, driver_of=lambda _: driver, now=platform.clock())

    assert by_default() == "public"
    settings.DEFAULT_ACCESS = "authenticated"
    assert by_default() == "public", "this gateway cannot"
    driver.has_policies = True
    assert by_default() == "authenticated"
    driver.has_policies, driver.away = False, "the cluster is away"
    assert by_default() == "authenticated", "whether it can is not known"
    driver = Unasked()
    assert by_default() == "authenticated", "nor where its role lets no one ask"
    named: Any = {"document": document, "namespace": None, "name": None, "actor": "alice", "now": platform.clock()}
    service, _ = service_apply(**named, default_access=by_default())
    assert stored_access(service.access).callers == Access()
    assert by_default() is None, "it is there already"
    document["spec"]["access"] = "public"
    assert by_default() is None, "its file says"
    service, _ = service_apply(**named)
    assert stored_access(service.access).callers is None
