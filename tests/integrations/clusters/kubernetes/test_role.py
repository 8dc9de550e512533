"""The driver's roles are enough for all it does, and for nothing else."""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
import yaml

from common.errors import Conflict, InvalidInput, NotFound, NotPermitted, Unavailable
from integrations.clusters.base import (
    Access,
    Autoscaling,
    Candidate,
    Desired,
    DesiredNode,
    DesiredRevision,
    Job,
    JobKind,
    Resources,
    Tap,
    WorkloadIdentity,
)
from integrations.clusters.kubernetes import rbac
from integrations.clusters.kubernetes.api import resource_types
from integrations.clusters.kubernetes.api.client import Api
from integrations.clusters.kubernetes.apply import gpu_nodes
from integrations.clusters.kubernetes.driver import KubernetesDriver
from integrations.clusters.kubernetes.manifests import render
from integrations.clusters.kubernetes.manifests.names import MANAGED
from integrations.clusters.kubernetes.manifests.pools import of_pool
from integrations.clusters.kubernetes.options import (
    ClosedNetwork,
    GatewayReference,
    GpuAllocation,
    Keda,
    Options,
    Repartition,
)
from integrations.clusters.kubernetes.watches.watcher import OPTIONAL, WATCHED
from tests.cluster._support.definitions import define_keda, define_policies
from tests.cluster._support.removal import remove
from tests.cluster.plane import ControlPlane
from tests.integrations._support.rights import may, watch
from tests.integrations._support.runtimes import until

pytestmark = pytest.mark.cluster
ROLE = Path(rbac.__file__).with_name("role.yaml")
USER, NAMESPACE = "fairlead-driver", "with-a-role"
READER = "fairlead-reader"
"""Who has the optional role for metrics, and no other."""
REPLAYER = "fairlead-replayer"
"""Who has the optional role for replays through the API server, and no other."""
SURVEYOR = "fairlead-surveyor"
"""Who has the optional role for nodes, and no other."""
WITH_KEDA = "fairlead-with-keda"
"""Who has the optional role for ScaledObjects, and no other."""
CLAIMING = "fairlead-claiming"
"""Who has the optional roles for claims of GPUs, beside those for nodes and Jobs."""
GUARDING = "fairlead-guarding"
"""Who has the optional role for policies of who may call, and no other."""
POOLING = "fairlead-pooling"
"""Who has the optional role for model pools, beside the driver's."""
CLOSING = "fairlead-closing"
"""Who has the optional role for the network of Jobs, beside that for Jobs."""
CUTTER = "fairlead-cutter"
"""Who has the optional roles for cutting nodes anew, and that for nodes."""
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
OPTIONS = Options(
    GatewayReference("gateway", "gateways"),
    "fairlead/serving-runtime:test",
    "models",
    "/artifacts",
    custom_metrics=True,
)


@pytest.fixture(scope="module")
def client(plane: ControlPlane) -> Iterator[httpx.Client]:
    """Give an administrator, after they bound the role to the driver's user as the role's file says."""
    with plane.client() as administrator:

        def create(path: str, body: dict[str, object]) -> None:
            administrator.post(f"{path}?fieldValidation=Strict", json=body).raise_for_status()

        create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        roles = list(yaml.safe_load_all(ROLE.read_text()))
        for role in roles:
            create(f"{_RBAC}/clusterroles", role)
        subjects = [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": USER}]
        readers = [{**subjects[0], "name": READER}]
        replayers = [{**subjects[0], "name": REPLAYER}]
        surveyors = [{**subjects[0], "name": SURVEYOR}]
        pooling = [{**subjects[0], "name": POOLING}]
        here, everywhere = f"{_RBAC}/namespaces/{NAMESPACE}/rolebindings", f"{_RBAC}/clusterrolebindings"
        own = ((here, subjects + pooling), (everywhere, subjects), (everywhere, subjects))
        keda = [{**subjects[0], "name": WITH_KEDA}]
        claiming = [{**subjects[0], "name": CLAIMING}]
        guarding = [{**subjects[0], "name": GUARDING}]
        closing = [{**subjects[0], "name": CLOSING}]
        cutters = [{**subjects[0], "name": CUTTER}]
        bound = (*own, (here, readers), (here, replayers), (here, keda), (here, claiming))
        bound = (
            *bound,
            (everywhere, claiming),
            (here, guarding),
            (here, pooling),
            (here, subjects + closing + claiming),
        )
        bound = (*bound, (here, closing))
        bound = (
            *bound,
            (everywhere, surveyors + cutters + claiming),
            (everywhere, cutters),
            (here, cutters),
            (here, cutters),
        )
        for (path, who), role in zip(bound, roles, strict=True):
            name = role["metadata"]["name"]
            reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
            create(path, {"metadata": {"name": name}, "roleRef": reference, "subjects": who})
        yield administrator
        for (path, _), role in zip(bound, roles, strict=True):
            for made in (path, f"{_RBAC}/clusterroles"):
                administrator.delete(f"{made}/{role['metadata']['name']}").raise_for_status()
        administrator.delete(f"/api/v1/namespaces/{NAMESPACE}")


def test_the_driver_does_all_it_does_with_its_role(client: httpx.Client, plane: ControlPlane, tmp_path: Path) -> None:
    api = Api(plane.user(USER))
    taps = {"name": "test", "control_plane_url": "http://127.0.0.1:1", "payloads_folder": str(tmp_path / "payloads")}
    driver = KubernetesDriver(api, replace(OPTIONS, **taps))

    def wish(generation: int, *numbers: int, replicas: int) -> None:
        revisions = [
            DesiredRevision(
                f"digits-{number}", "digits", "1", f"file:///artifacts/{number}", "sha256:0", replicas, 50, tap=Tap(50)
            )
            for number in numbers
        ]
        driver.apply(Desired(NAMESPACE, "digits", generation, tuple(revisions)))

    wish(1, 1, 2, replicas=1)
    wish(2, 2, replicas=3)
    left = ["digits-2"]
    until(lambda: [each.name for each in driver.observe(NAMESPACE, "digits").revisions] == left, "no pod of digits-1")
    with pytest.raises(Conflict, match="pod other is no replica"):
        driver.keep(WorkloadIdentity(NAMESPACE, "digits", "other"), b"[]")
    assert driver.inventory().components[0].name == "gateway"
    assert "fairlead-driver-nodes is not given" in driver.inventory(with_nodes=True).unknown
    assert driver.identify("a.b.c") is None
    assert api.find(resource_types.EVENT, NAMESPACE, {"involvedObject.name": "digits-2-x"}, most=1, timeout_s=10) == []
    with pytest.raises(NotFound):  # it may ask, and there is no such pod
        api.log(NAMESPACE, "digits-2-x", "runtime", previous=False, lines=1, most_bytes=100, timeout_s=10)
    remove(driver, "digits", 3, NAMESPACE)
    api.close()


def test_pages_of_pods_take_the_optional_role_and_it_gives_nothing_else(
    client: httpx.Client, plane: ControlPlane
) -> None:
    path = resource_types.metrics_path(NAMESPACE, "digits-0", 8002)
    told = {}
    for user in (USER, READER):
        api = Api(plane.user(user))
        with pytest.raises(Unavailable) as refused:
            api.page(path)
        told[user] = str(refused.value)
        api.close()
    assert 'cannot get resource "pods/proxy"' in told[USER]
    assert told[USER].endswith("bind the role fairlead-driver-metrics")
    assert 'pods "digits-0" not found' in told[READER]
    for verb, resource in (("create", "pods/proxy"), ("get", "pods"), ("list", "pods"), ("get", "services/proxy")):
        assert not may(client, READER, verb, "", resource, NAMESPACE), f"{verb} {resource}"
    assert not may(client, READER, "get", "", "pods/proxy", "default")


def test_scaled_objects_take_the_role_for_keda_and_it_gives_nothing_else(
    client: httpx.Client, plane: ControlPlane
) -> None:
    define_keda(client)
    scaling = Autoscaling(5, {"concurrency": 7.5})
    revision = DesiredRevision(
        "digits-1", "digits", "1", "file:///artifacts/1", "sha256:0", 1, 100, autoscaling=scaling
    )
    options = replace(OPTIONS, custom_metrics=False, keda=Keda("http://prometheus.monitoring:9090"))
    asked = next(
        each
        for each in render(Desired(NAMESPACE, "digits", 1, (revision,)), {"digits-1": 100}, options)
        if each["kind"] == resource_types.SCALED_OBJECT.kind
    )
    for user in (USER, WITH_KEDA):
        api = Api(plane.user(user))
        with pytest.raises(NotPermitted) if user == USER else nullcontext():
            api.apply(asked)
            (there,) = api.list(resource_types.SCALED_OBJECT, NAMESPACE, MANAGED)
            watch(plane, user, NAMESPACE, resource_types.SCALED_OBJECT)
            api.delete(resource_types.SCALED_OBJECT, NAMESPACE, "digits-1", uid=there["metadata"]["uid"])
        api.close()
    for verb, resource in (("get", "scaledobjects"), ("list", "scaledjobs"), ("get", "triggerauthentications")):
        assert not may(client, WITH_KEDA, verb, "keda.sh", resource, NAMESPACE), f"{verb} {resource}"
    assert not may(client, WITH_KEDA, "list", "keda.sh", "scaledobjects", "default")


def test_claims_of_gpus_take_their_roles_and_they_give_nothing_else(client: httpx.Client, plane: ControlPlane) -> None:
    options = replace(
        OPTIONS, gpu_runtime_image="cuda:1", gpu_allocation=GpuAllocation.CLAIMS, jobs_namespace=NAMESPACE
    )
    resources = Resources(accelerator="nvidia.com/gpu")
    revision = DesiredRevision(
        "digits-1", "digits", "1", "file:///artifacts/1", "sha256:0", 1, 100, resources=resources
    )
    made = render(Desired(NAMESPACE, "digits", 1, (revision,)), {}, options)
    (template,) = (each for each in made if each["kind"] == resource_types.CLAIM_TEMPLATE.kind)
    for user in (USER, CLAIMING):
        api = Api(plane.user(user))
        with pytest.raises(NotPermitted) if user == USER else nullcontext():
            api.apply(template)
            (there,) = api.list(resource_types.CLAIM_TEMPLATE, NAMESPACE, MANAGED)
            api.delete(resource_types.CLAIM_TEMPLATE, NAMESPACE, "digits-1", uid=there["metadata"]["uid"])
        for kind in (resource_types.RESOURCE_SLICE, resource_types.CLAIM):
            with pytest.raises(NotPermitted) if user == USER else nullcontext():
                assert isinstance(api.list(kind, "", {}), list)
        with pytest.raises(NotPermitted) if user == USER else nullcontext():
            assert api.get(resource_types.DEVICE_CLASS, "", "gpu.example.com") is None
        api.close()
    api = Api(plane.user(CLAIMING))
    asked = Job(JobKind.TUNE, "file:///artifacts/1", 1, "sha256:0", resources=resources)  # which waits for no node
    assert "did not finish" in KubernetesDriver(api, options).run(asked).message
    api.close()
    for verb, resource in (
        ("create", "resourceclaims"),
        ("delete", "resourceclaims"),
        ("patch", "resourceclaims/status"),
        ("get", "resourceclaimtemplates"),
        ("patch", "deviceclasses"),
        ("delete", "resourceslices"),
    ):
        assert not may(client, CLAIMING, verb, "resource.k8s.io", resource, NAMESPACE), f"{verb} {resource}"
    assert not may(client, CLAIMING, "create", "resource.k8s.io", "resourceclaimtemplates", "default")


def test_policies_take_the_role_for_access_and_it_gives_nothing_else(client: httpx.Client, plane: ControlPlane) -> None:
    define_policies(client)
    revision = DesiredRevision("digits-1", "digits", "1", "file:///artifacts/1", "sha256:0", 1, 100)
    desired = Desired(NAMESPACE, "guarded", 1, (replace(revision, model_name="guarded"),), access=Access())
    made = [each for each in render(desired, {}, OPTIONS) if resource_types.kind_of(each) in resource_types.POLICIES]
    assert len(made) == 2
    for user in (USER, GUARDING):
        api = Api(plane.user(user))
        for policy in made:
            kind = resource_types.kind_of(policy)
            with pytest.raises(NotPermitted) if user == USER else nullcontext():
                api.apply(policy)
                (there,) = api.list(kind, NAMESPACE, MANAGED)
                api.apply(policy, force=True)
                watch(plane, user, NAMESPACE, kind)
                api.delete(kind, NAMESPACE, "guarded", uid=there["metadata"]["uid"])
        api.close()
    group = "gateway.envoyproxy.io"
    for verb, resource in (("get", "securitypolicies"), ("list", "clienttrafficpolicies"), ("patch", "envoyproxies")):
        assert not may(client, GUARDING, verb, group, resource, NAMESPACE), f"{verb} {resource}"
    assert not may(client, GUARDING, "list", group, "securitypolicies", "default")


def test_pools_take_their_role_and_it_gives_a_pool_the_right_to_its_catalog_alone(
    client: httpx.Client, plane: ControlPlane
) -> None:
    revision = DesiredRevision("warm-00001", "warm", "1", "", "", 0, 100, is_pool=True)
    pool = Desired(NAMESPACE, "warm", 1, (revision,), shared_with=("vision",))
    for user in (USER, POOLING):
        with pytest.raises(InvalidInput, match=f"bind the role {rbac.POOLS} in") if user == USER else nullcontext():
            KubernetesDriver(Api(plane.user(user)), OPTIONS).check(pool)
    made = of_pool(pool)[1:]
    assert [each["kind"] for each in made] == ["Role", "RoleBinding", "ReferenceGrant"]
    for user in (USER, POOLING):
        api = Api(plane.user(user))
        for each in made:
            with pytest.raises(NotPermitted) if user == USER else nullcontext():
                api.apply(each)
                api.apply(each, force=True)
        wider = {**made[0], "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]}
        with pytest.raises(NotPermitted):
            api.apply(wider, force=True)
        api.close()
    pod = f"system:serviceaccount:{NAMESPACE}:warm"
    names = ("fairlead-warm.catalog-3f", "fairlead-warm", "fairlead-other.catalog-3f")
    assert [may(client, pod, "get", "", "configmaps", NAMESPACE, name) for name in names] == [True, False, False]
    assert not may(client, pod, "list", "", "configmaps", NAMESPACE)
    api = Api(plane.user(POOLING))
    for kind in (*resource_types.OF_POOLS, resource_types.REFERENCE_GRANT):
        (there,) = api.list(kind, NAMESPACE, MANAGED)
        api.delete(kind, NAMESPACE, there["metadata"]["name"], uid=there["metadata"]["uid"])
    api.close()
    assert not may(client, POOLING, "create", "rbac.authorization.k8s.io", "roles", "default")


def test_a_pool_of_another_namespace_takes_the_driver_s_role_there_too(
    client: httpx.Client, plane: ControlPlane
) -> None:
    assert may(client, POOLING, "get", "", "configmaps", NAMESPACE)
    its = DesiredRevision("digits-1", "digits", "1", "file:///artifacts/1", "sha256:0", 1, 100, pool="default/warm")
    driver = KubernetesDriver(Api(plane.user(POOLING)), OPTIONS)
    with pytest.raises(
        InvalidInput, match="in pool default/warm, whose catalog is in namespace default: bind the role"
    ):
        driver.check(Desired(NAMESPACE, "digits", 1, (its,)))
    driver.close()


def test_closing_the_network_of_jobs_takes_its_role_and_it_gives_nothing_else(
    client: httpx.Client, plane: ControlPlane
) -> None:
    options = replace(OPTIONS, jobs_namespace=NAMESPACE, network=ClosedNetwork())
    asked = Job(JobKind.TUNE, "file:///artifacts/1", 1, "sha256:0")  # which waits for no node
    api = Api(plane.user(CLOSING))
    for _ in range(2):
        assert "did not finish" in KubernetesDriver(api, options).run(asked).message
    api.close()
    there = client.get(resource_types.NETWORK_POLICY.path(NAMESPACE)).json()["items"]
    assert {each["metadata"]["name"] for each in there} >= {"fairlead-jobs", "fairlead-jobs.granted"}
    for verb, resource in (("delete", "networkpolicies"), ("list", "networkpolicies"), ("create", "ingresses")):
        assert not may(client, CLOSING, verb, "networking.k8s.io", resource, NAMESPACE), f"{verb} {resource}"
    assert not may(client, CLOSING, "create", "networking.k8s.io", "networkpolicies", "default")


def test_asking_pods_takes_the_role_for_replays_and_it_gives_nothing_else(
    client: httpx.Client, plane: ControlPlane
) -> None:
    path = resource_types.proxied(NAMESPACE, "digits-0", 8000, "/replay")
    for user, refused in ((USER, NotPermitted), (READER, NotPermitted), (REPLAYER, NotFound)):
        api = Api(plane.user(user))
        with pytest.raises(refused):
            api.ask(path, {})
        api.close()
    for verb, resource in (("get", "pods/proxy"), ("create", "pods"), ("list", "pods"), ("create", "services/proxy")):
        assert not may(client, REPLAYER, verb, "", resource, NAMESPACE), f"{verb} {resource}"
    assert not may(client, REPLAYER, "create", "", "pods/proxy", "default")


def test_the_driver_starts_and_ends_a_candidate_with_its_role(client: httpx.Client, plane: ControlPlane) -> None:
    api = Api(plane.user(USER))
    driver = KubernetesDriver(api, replace(OPTIONS, longest_start_s=1))
    revision = DesiredRevision("digits-1", "digits", "1", "file:///artifacts/1", "sha256:0", 1, 100)
    driver.apply(Desired(NAMESPACE, "digits", 10, (revision,)))
    asked = Candidate(
        *("version 2", "digits", "2", "file:///artifacts/2"), namespace=NAMESPACE, service="digits", replay="7"
    )
    with pytest.raises(Unavailable, match="version 2 was not ready within 1 s"), driver.replay(asked):
        pytest.fail("no node takes it")
    assert [
        each for each in api.list(resource_types.JOB, NAMESPACE, {}) if "deletionTimestamp" not in each["metadata"]
    ] == []
    remove(driver, "digits", 11, NAMESPACE)
    api.close()


def test_the_driver_watches_all_it_makes_with_its_role(client: httpx.Client, plane: ControlPlane) -> None:
    for kind in (*(each for each in WATCHED if each not in OPTIONAL), resource_types.CONFIG_MAP):
        watch(plane, USER, NAMESPACE, kind)


def test_the_role_for_nodes_lets_the_room_on_them_be_read_and_nothing_else(
    client: httpx.Client, plane: ControlPlane
) -> None:
    api = Api(plane.user(SURVEYOR))
    names = [each["metadata"]["name"] for each in client.get("/api/v1/nodes").raise_for_status().json()["items"]]
    assert [each["metadata"]["name"] for each in api.list(resource_types.NODE, "", {})] == sorted(names)
    assert isinstance(api.list(resource_types.POD, "", {}), list)
    with pytest.raises(NotPermitted):
        api.get(resource_types.NODE, "", "node-1")
    with pytest.raises(NotPermitted):
        api.list(resource_types.DEPLOYMENT, NAMESPACE, {})
    api.close()


def test_cutting_nodes_takes_the_roles_for_it_and_they_give_nothing_else(
    client: httpx.Client, plane: ControlPlane
) -> None:
    file = {"version": "v1", "mig-configs": {"all-1g.10gb": []}}
    body = {"metadata": {"name": gpu_nodes.CONFIG_MAP}, "data": {gpu_nodes.KEY: yaml.safe_dump(file)}}
    client.post(resource_types.CONFIG_MAP.path(NAMESPACE), json=body).raise_for_status()
    client.post(resource_types.NODE.path(""), json={"metadata": {"name": "to-cut"}}).raise_for_status()
    options = replace(OPTIONS, repartition=Repartition(NAMESPACE, 30))
    wish = DesiredNode("to-cut", "wish-1", True, (f"{NAMESPACE}/gone",), "fairlead-new", {"fairlead-new": []})
    try:
        for user, refused in ((USER, pytest.raises(NotPermitted)), (CUTTER, nullcontext())):
            api = Api(plane.user(user))
            driver = KubernetesDriver(api, options)
            with refused:
                assert driver.apply_node(wish) == []
                seen = driver.observe_node("to-cut")
                assert seen is not None
                assert (seen.cordoned, seen.mark, {*seen.configs}) == (True, "wish-1", {"all-1g.10gb", "fairlead-new"})
                assert (seen.gpus.config, seen.gpus.config_state) == ("fairlead-new", "pending")
                driver.apply_node(replace(wish, mark="wish-2", cordoned=False))
                assert client.get(resource_types.NODE.path("", "to-cut")).json()["spec"][
                    "unschedulable"
                ]  # another's cordon
                driver.apply_node(replace(wish, cordoned=False))
                found = driver.observe_node("to-cut")
                assert found is not None
                assert (found.cordoned, found.mark) == (False, "")
                assert driver.observe_node("no-such-node") is None
            api.close()
    finally:
        client.delete(resource_types.NODE.path("", "to-cut")).raise_for_status()
        client.delete(resource_types.CONFIG_MAP.path(NAMESPACE, gpu_nodes.CONFIG_MAP)).raise_for_status()
    for verb, resource, namespace in (
        ("delete", "nodes", ""),
        ("patch", "nodes/status", ""),
        ("delete", "pods", NAMESPACE),
        ("create", "pods/eviction", "default"),
        ("patch", "configmaps", NAMESPACE),
    ):
        assert not may(client, CUTTER, verb, "", resource, namespace), f"{verb} {resource}"


@pytest.mark.parametrize(
    ("verb", "group", "resource", "namespace"),
    [
        pytest.param("get", "", "secrets", NAMESPACE, id="secrets"),
        pytest.param("create", "", "pods", NAMESPACE, id="pods of its own"),
        pytest.param("watch", "", "configmaps", "default", id="what others configure"),
        pytest.param("watch", "", "pods", "default", id="pods of other namespaces"),
        pytest.param("create", "", "pods/exec", NAMESPACE, id="commands in pods"),
        pytest.param("get", "", "pods/proxy", NAMESPACE, id="pages of pods"),
        pytest.param("create", "", "pods/proxy", NAMESPACE, id="requests to pods"),
        pytest.param("create", "batch", "jobs", "default", id="jobs of other namespaces"),
        pytest.param("list", "", "nodes", "", id="nodes"),
        pytest.param("patch", "", "nodes", "", id="cordons"),
        pytest.param("create", "", "pods/eviction", NAMESPACE, id="evictions"),
        pytest.param("create", "", "serviceaccounts/token", NAMESPACE, id="tokens of pods"),
        pytest.param("create", "authorization.k8s.io", "subjectaccessreviews", "", id="what others may do"),
        pytest.param("list", "", "events", "default", id="events of other namespaces"),
        pytest.param("get", "", "pods/log", "default", id="logs of other namespaces"),
        pytest.param("create", "rbac.authorization.k8s.io", "rolebindings", NAMESPACE, id="more rights"),
        pytest.param("patch", "gateway.networking.k8s.io", "gateways", "gateways", id="the operator's gateway"),
        pytest.param("patch", "apps", "deployments", "default", id="other namespaces"),
    ],
)
def test_the_driver_may_do_nothing_else(
    verb: str, group: str, resource: str, namespace: str, client: httpx.Client
) -> None:
    assert not may(client, USER, verb, group, resource, namespace)
