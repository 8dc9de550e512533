"""Who may connect to whom by the policies of models' pods: a table, and everything that is not in it is denied.

No network plugin runs here, so an evaluator reads the policies, as rendered and as a real API server keeps them.
"""

from collections.abc import Iterator
from dataclasses import replace
from ipaddress import ip_address, ip_network

import httpx
import pytest

from integrations.clusters.base import Job, JobKind
from integrations.clusters.kubernetes.api import resource_types
from integrations.clusters.kubernetes.api.client import Api
from integrations.clusters.kubernetes.driver import KubernetesDriver
from integrations.clusters.kubernetes.manifests.names import JOB
from integrations.clusters.kubernetes.manifests.network.peers import CLOSED
from integrations.clusters.kubernetes.manifests.network.policies import of_jobs, of_replay
from integrations.clusters.kubernetes.options import ClosedNetwork, Destination
from serving_runtime.shared.egress import GUARDED
from tests._support.network_policies import Place, may_connect
from tests.cluster._support.removal import remove
from tests.cluster.plane import ControlPlane
from tests.integrations._support.closed_network import (
    CANARY,
    GRANTED,
    LOGGED,
    OPTIONS,
    OUTSIDE,
    PLAIN,
    Scene,
    desired,
    manifests,
    scene,
)

TEAM = "team-a"
PUBLIC_LOGGER = "digits-00005"
REPLICAS = (PLAIN, CANARY, GRANTED, LOGGED, PUBLIC_LOGGER)
TRANSFORMERS = (f"{CANARY}-transformer", f"{GRANTED}-transformer")
JOBS = ("asks", "asks-granted", "replays", "replays-granted")
WITH_EGRESS = (GRANTED, f"{GRANTED}-transformer", "asks-granted", "replays-granted")
OURS = (*REPLICAS, *TRANSFORMERS, *JOBS)
PORTS = (22, 53, 80, 443, 8000, 8001, 8002, 8080, 8081, 9090)
Allowed = set[tuple[str, str, int]]


def allowed_from_pods(ours: tuple[str, ...]) -> Allowed:
    """Return what pods of models may connect to by TCP: source, destination and port."""
    internet = ("the internet", "the internet by IPv6")
    with_storage = [each for each in ours if each not in TRANSFORMERS]
    return {
        *((each, "DNS", 53) for each in ours),
        *((each, "the web", 8080) for each in with_storage),
        *((each, "storage", 443) for each in with_storage),
        *((each, place, port) for each in WITH_EGRESS for place in internet for port in PORTS if each in ours),
        *((each, replica, port) for each in TRANSFORMERS for replica in REPLICAS for port in (8000, 8001)),
        *((LOGGED, "a pod beside", port) for port in PORTS),
        *((PUBLIC_LOGGER, place, 443) for place in (*internet, "a private network")),
    }


def allowed_to_pods(services_ports: tuple[int, ...] = (8000, 8001, 8080, 8081)) -> Allowed:
    """Return who may connect to pods of models."""
    return {
        *(("the gateway", each, port) for each in (*REPLICAS, *TRANSFORMERS) for port in services_ports),
        *(("Prometheus", each, 8002) for each in (*REPLICAS, *TRANSFORMERS)),
        *(("Prometheus", each, 8000) for each in ("replays", "replays-granted")),
    }


def found_in(made: Scene, ours: tuple[str, ...] = OURS) -> Allowed:
    """Return all connections from or to our pods that the policies let through, over every port of `PORTS`."""
    return {
        (source, target, port)
        for source, one in made.places.items()
        for target, other in made.places.items()
        for port in PORTS
        if source != target and (source in ours or target in ours) and may_connect(made.policies, one, other, port)
        if one.namespace  # what is outside comes by no pod's address, and is below
    }


def test_the_table_is_all_that_the_policies_let_through() -> None:
    found = found_in(scene(TEAM, manifests(TEAM)))
    wanted = allowed_from_pods(OURS) | allowed_to_pods()
    assert found - wanted == set()
    assert wanted - found == set()


def test_without_the_option_egress_is_open_and_jobs_have_no_policy() -> None:
    made = manifests(TEAM, replace(OPTIONS, network=None))
    policies = [each for each in made if each["kind"] == "NetworkPolicy"]
    assert [each["metadata"]["name"] for each in policies] == ["digits", "replays", "replays-granted"]
    assert {kind for each in policies for kind in each["spec"]["policyTypes"]} == {"Ingress"}
    there = scene(TEAM, made).places
    assert may_connect(policies, there[PLAIN], there["metadata"], 80)


def test_dns_is_asked_by_udp_too_and_nothing_else_is() -> None:
    made = scene(TEAM, manifests(TEAM))
    targets = [
        (name, port)
        for name, place in made.places.items()
        for port in PORTS
        if may_connect(made.policies, made.places[PLAIN], place, port, "UDP")
    ]
    assert targets == [("DNS", 53)]


@pytest.mark.parametrize("outside", OUTSIDE)
def test_nothing_comes_from_outside(outside: str) -> None:
    made = scene(TEAM, manifests(TEAM))
    assert not [
        (name, port)
        for name in OURS
        for port in PORTS
        if may_connect(made.policies, made.places[outside], made.places[name], port)
    ]


@pytest.mark.parametrize(
    ("wide", "inside"),
    [
        ("0.0.0.0/0", "10.1.2.3"),
        ("::/0", "2001:db8::1"),
        ("169.0.0.0/8", "169.253.255.255"),
        ("fd00::/8", "fd12::1"),
        ("64:ff9b::/96", "64:ff9b::5db8:d822"),
        ("100.64.0.0/10", "100.100.100.201"),
    ],
)
def test_no_range_of_an_operator_opens_metadata(wide: str, inside: str) -> None:
    """The first and the last address of each closed network, to pods that may reach the whole range."""
    anywhere = (Destination(ip_network(wide)),)
    network = ClosedNetwork(egress=anywhere, granted=(*anywhere, Destination(is_internet=True)))
    made = scene(TEAM, manifests(TEAM, replace(OPTIONS, network=network, egress_allowed=GUARDED)))
    for closed in CLOSED:
        for address in (closed[0], closed[-1]):
            place = Place(str(address))
            assert not [name for name in OURS if may_connect(made.policies, made.places[name], place, 80)], address
    assert may_connect(made.policies, made.places[PLAIN], Place(inside), 80)


@pytest.mark.parametrize(
    ("address", "is_open"),
    [
        ("8.8.8.8", True),
        ("2606:4700::1111", True),
        ("64:ff9b::8.8.8.8", True),
        ("64:ff9b::10.1.2.3", False),
        ("64:ff9b::100.64.0.1", False),
        ("64:ff9b::169.254.169.254", False),
        ("64:ff9b:1::8.8.8.8", False),
        ("fd00::1", False),
        ("fd00:ec2::254", False),
        ("2002:a01:203::1", False),
    ],
)
def test_the_internet_is_reached_by_nat64_too(address: str, is_open: bool) -> None:
    """As pods without IPv4 reach hosts without IPv6; what the prefix carries of private networks stays closed."""
    internet = (Destination(is_internet=True),)
    made = scene(TEAM, manifests(TEAM, replace(OPTIONS, network=ClosedNetwork(egress=internet, granted=internet))))
    assert may_connect(made.policies, made.places[PLAIN], Place(str(ip_address(address))), 443) is is_open


def test_names_of_policies_are_no_names_of_other_services() -> None:
    names = [each["metadata"]["name"] for each in manifests(TEAM) if each["kind"] == "NetworkPolicy"]
    assert len(names) == len(set(names))
    assert [each for each in names if "." not in each] == ["digits", "replays", "replays-granted", "fairlead-jobs"]


@pytest.fixture
def api(plane: ControlPlane) -> Iterator[Api]:
    api = Api(plane.kubeconfig)
    yield api
    api.close()


@pytest.mark.cluster
def test_what_the_driver_applied_on_a_real_api_server_is_the_table(plane: ControlPlane, api: Api) -> None:
    """Replicas and transformers of a service, and a Job; no node takes their pods."""
    with plane.client() as admin:
        for name in (TEAM, "closed-jobs"):
            _made(admin, name)
    options = replace(OPTIONS, jobs_namespace="closed-jobs")
    driver = KubernetesDriver(api, options)
    driver.apply(desired(TEAM))
    result = driver.run(Job(JobKind.TUNE, "file:///a", 2, "sha256:aa"))  # which waits for no node
    assert "did not finish within 2 s" in result.message
    there = [
        {**each, "kind": kind.kind}
        for kind in (resource_types.DEPLOYMENT, resource_types.NETWORK_POLICY)
        for namespace in (TEAM, "closed-jobs")
        for each in api.list(kind, namespace, {})
    ]
    job = next(each for each in manifests(TEAM, options) if each["metadata"]["name"] == "asks")
    assert JOB in job["spec"]["template"]["metadata"]["labels"]
    ours = (*REPLICAS, *TRANSFORMERS, "asks")
    found = found_in(scene(TEAM, [*there, job], "closed-jobs"), ours)
    to_pods = {each for each in allowed_to_pods() if each[1] in ours}
    assert found == allowed_from_pods(ours) | to_pods
    before = {each["metadata"]["name"]: each["metadata"]["resourceVersion"] for each in there}
    driver.apply(desired(TEAM))
    again = api.list(resource_types.NETWORK_POLICY, TEAM, {})
    assert {each["metadata"]["resourceVersion"] for each in again} <= set(before.values()), "an idle service is read"
    open_again = KubernetesDriver(api, replace(options, network=None))
    open_again.apply(replace(desired(TEAM), generation=2))
    (left,) = api.list(resource_types.NETWORK_POLICY, TEAM, {})
    assert left["spec"]["policyTypes"] == ["Ingress"]
    remove(driver, "digits", 3, TEAM)


@pytest.mark.cluster
def test_a_strict_api_server_takes_every_policy(plane: ControlPlane, api: Api) -> None:
    with plane.client() as admin:
        _made(admin, "strict-network")
    wide = tuple(Destination(ip_network(each)) for each in ("0.0.0.0/0", "::/0", "fd00::/8"))
    options = replace(OPTIONS, jobs_namespace="strict-network", network=ClosedNetwork(wide, wide, wide))
    for policy in (*of_jobs(options), *(each for each in manifests("strict-network", options))):
        if policy["kind"] == "NetworkPolicy":
            api.apply(policy, dry_run=True)


def _made(admin: httpx.Client, namespace: str) -> None:
    answer = admin.post("/api/v1/namespaces", json={"metadata": {"name": namespace}})
    assert answer.status_code in (201, 409), answer.text


def test_a_replay_opens_nothing_more_without_granted_egress() -> None:
    job = next(each for each in manifests(TEAM) if each["metadata"]["name"] == "replays")
    made = {**job, "metadata": {**job["metadata"], "uid": "1"}}
    assert len(of_replay(made, OPTIONS, egress=True)["spec"]["egress"]) == 4
    assert len(of_replay(made, OPTIONS)["spec"]["egress"]) == 3
