"""What the chart makes: golden files for every variation, and what holds for all of them."""

import re

import helm_python as helm
import pytest
import yaml

from clusters.domain.cluster_file import parse_cluster
from integrations.clusters.kubernetes.manifests.names import MANAGED
from integrations.clusters.kubernetes.manifests.workloads.secure import SECURE
from integrations.clusters.kubernetes.options import ClosedNetwork, WakerReference
from tests._support.golden import check_feature, check_text
from tests.charts.chart import (
    BASE,
    CHART,
    GOLDEN,
    NAMESPACE,
    RELEASE,
    ROOT,
    VARIATIONS,
    Json,
    golden,
    objects,
    own,
    pods,
    rendered,
    tree,
    values,
)

ROLES = ROOT / "platform" / "integrations" / "clusters" / "kubernetes" / "role.yaml"
ASK_THE_API_SERVER = {"fairlead-web", "fairlead-worker", "fairlead-watcher", "fairlead-waker"}
_OF_CUTTING = {"driver-repartition", "driver-repartition-pods", "driver-repartition-mig"}
FEATURES = [variation for variation in VARIATIONS if variation != BASE]
everywhere = pytest.mark.parametrize("variation", VARIATIONS)


def test_the_base_is_as_it_was_rendered() -> None:
    check_text(GOLDEN / f"{BASE}.out.yaml", f"the base, {BASE},", golden(BASE))


@pytest.mark.parametrize("variation", FEATURES)
def test_a_feature_is_as_it_was_rendered(variation: str) -> None:
    check_feature(GOLDEN, variation, tree(BASE), tree(variation))


def test_every_golden_file_has_a_variation() -> None:
    expected = {f"{BASE}.out.yaml", *(f"{variation}.diff.yaml" for variation in FEATURES)}
    assert {path.name for path in GOLDEN.iterdir()} == expected


@everywhere
def test_every_pod_is_restricted_and_writes_to_its_volumes_alone(variation: str) -> None:
    found = list(pods(objects(values(variation))))
    assert len(found) >= 5
    for name, spec in found:
        security = spec["securityContext"]
        assert (security["runAsNonRoot"], security["seccompProfile"]) == (True, {"type": "RuntimeDefault"}), name
        assert security.get("runAsUser", 1) > 0
        for container in own((*spec.get("initContainers", ()), *spec["containers"])):
            assert container["securityContext"].items() >= SECURE.items(), name
            assert {"requests", "limits"} <= set(container["resources"]), name
            assert "/tmp" in {each["mountPath"] for each in container["volumeMounts"]} or name.endswith("-redis")


@everywhere
def test_a_token_is_mounted_only_where_the_api_server_is_asked(variation: str) -> None:
    found = objects(values(variation))
    for name, spec in pods(found):
        assert spec["automountServiceAccountToken"] is (name in ASK_THE_API_SERVER), name
    accounts = [each for each in found if each["kind"] == "ServiceAccount"]
    given = values(variation)
    number = (1 + bool(given.get("waker"))) if given.get("serviceAccount", {}).get("create", True) else 0
    assert [each["automountServiceAccountToken"] for each in accounts] == [False] * number


@everywhere
def test_what_runs_on_has_probes(variation: str) -> None:
    for each in objects(values(variation)):
        if each["kind"] in ("Deployment", "StatefulSet"):
            for container in own(each["spec"]["template"]["spec"]["containers"]):
                assert {"readinessProbe", "livenessProbe"} <= set(container), each["metadata"]["name"]


def test_a_web_pod_that_is_replaced_has_time_for_the_requests_under_way() -> None:
    (web,) = [spec for name, spec in pods(objects({"web": {"shutdownSeconds": 90}})) if name == "fairlead-web"]
    (container,) = web["containers"]
    assert "--timeout-graceful-shutdown=90" in container["command"]
    assert web["terminationGracePeriodSeconds"] == 90 + container["lifecycle"]["preStop"]["sleep"]["seconds"] + 5


@everywhere
def test_selectors_find_the_pods_they_are_for(variation: str) -> None:
    found = objects(values(variation))
    labels = [each["spec"]["template"]["metadata"]["labels"] for each in found if "template" in each.get("spec", {})]
    for each in found:
        chosen = _selected(each)
        if chosen:
            matching = [one for one in labels if chosen.items() <= one.items()]
            assert len(matching) == 1, f"{each['kind']} {each['metadata']['name']}"


@everywhere
def test_no_secret_is_in_a_pod_or_a_config_map(variation: str) -> None:
    text = "\n".join(text for name, text in rendered(values(variation)).items() if name != "storage/secret.yaml")
    assert not re.search(r"postgres://|redis://", text)


def test_the_driver_gets_exactly_its_role_in_the_namespaces_that_values_name() -> None:
    found = objects({"cluster": {"namespaces": ["vision", "text"], "file": {"jobs": {"namespace": "checks"}}}})
    known = {
        each["metadata"]["name"].removeprefix("fairlead-"): each["rules"]
        for each in yaml.safe_load_all(ROLES.read_text())
    }
    roles = {
        each["metadata"]["name"].removeprefix(f"{NAMESPACE}-{RELEASE}-"): each["rules"]
        for each in _of(found, "ClusterRole")
    }
    optional = {f"driver-{name}" for name in ("metrics", "replays", "keda", "claims", "devices", "pools")} | {
        *_OF_CUTTING
    }
    assert roles == {name: rules for name, rules in known.items() if name not in optional}
    assert _of(found, "Role") == []
    bound = {
        (each["metadata"].get("namespace", ""), _role(each)) for each in _of(found, "RoleBinding", "ClusterRoleBinding")
    }
    everywhere = {("", name) for name in ("driver-gateways", "driver-identity", "driver-nodes")}
    in_namespaces = {(name, role) for name in ("vision", "text") for role in ("driver", "driver-access")}
    assert bound == everywhere | in_namespaces | {("checks", "driver-jobs"), ("checks", "driver-jobs-network")}
    subjects = [each["subjects"] for each in _of(found, "RoleBinding", "ClusterRoleBinding")]
    assert all(each == [{"kind": "ServiceAccount", "name": RELEASE, "namespace": NAMESPACE}] for each in subjects)


@pytest.mark.parametrize("uses_cluster_role", [True, False])
def test_the_waker_may_start_replicas_where_services_run_and_nothing_else(uses_cluster_role: bool) -> None:
    copy = CHART / "files" / "waker_role.yaml"
    assert copy.read_text() == ROLES.with_name("waker_role.yaml").read_text()
    namespaces = {"namespaces": ["vision", NAMESPACE], "file": {"jobs": {"namespace": "vision"}}}
    found = objects({"waker": {"enabled": True}, "cluster": namespaces, "rbac": {"useClusterRole": uses_cluster_role}})
    its = [each for each in found if each["metadata"].get("labels", {}).get("app.kubernetes.io/component") == "waker"]
    rules = [each["rules"] for each in _of(its, "ClusterRole", "Role")]
    assert rules == [yaml.safe_load(copy.read_text())["rules"]] * (1 if uses_cluster_role else 2)
    account = {"kind": "ServiceAccount", "name": f"{RELEASE}-waker", "namespace": NAMESPACE}
    bound = {each["metadata"]["namespace"]: each["subjects"] for each in _of(its, "RoleBinding")}
    assert bound == {"vision": [account], NAMESPACE: [account]}
    assert not [each for each in _of(found, "RoleBinding") if account in each["subjects"] and each not in its]
    (spec,) = (spec for name, spec in pods(its))
    assert spec["serviceAccountName"] == f"{RELEASE}-waker"
    assert {each["name"] for each in spec["volumes"]} == {"tmp", "home"}, "no secret of the control plane"
    (grant,) = _of(its, "ReferenceGrant")
    assert [each["namespace"] for each in grant["spec"]["from"]] == ["vision"]
    (service,) = _of(its, "Service")
    waker = parse_cluster(_file(found)).options.waker
    assert waker == WakerReference(service["metadata"]["name"], NAMESPACE, service["spec"]["ports"][0]["port"])


def test_a_waker_without_services_here_is_refused() -> None:
    with pytest.raises(helm.HelmRenderError, match=r"waker\.enabled is true, but cluster\.enabled is false"):
        objects({"waker": {"enabled": True}, "cluster": {"enabled": False}})


def test_the_role_for_model_pools_is_given_where_services_run() -> None:
    found = objects({"cluster": {"namespaces": ["vision", "text"], "modelPools": True}})
    bound = {(each["metadata"]["namespace"], _role(each)) for each in _of(found, "RoleBinding")}
    assert {name for name, role in bound if role == "driver-pools"} == {"vision", "text"}


def test_the_role_for_keda_is_given_where_services_run_and_keda_follows_their_load() -> None:
    address = "http://prometheus.monitoring:9090"
    found = objects({"cluster": {"namespaces": ["vision", "text"], "keda": {"prometheus": address}}})
    assert "driver-keda" in {
        each["metadata"]["name"].removeprefix(f"{NAMESPACE}-{RELEASE}-") for each in _of(found, "ClusterRole")
    }
    bound = [each["metadata"]["namespace"] for each in _of(found, "RoleBinding") if _role(each) == "driver-keda"]
    assert bound == ["vision", "text"]
    (file,) = (each["data"]["cluster.yaml"] for each in _of(found, "ConfigMap") if "cluster.yaml" in each["data"])
    assert yaml.safe_load(file)["keda"] == {"prometheus": address}


def test_the_roles_for_cutting_nodes_are_given_where_the_operator_lets_that_be_done() -> None:
    found = objects({"cluster": {"namespaces": ["vision"], "repartition": True}})
    bound = {
        (each["metadata"].get("namespace", ""), _role(each)) for each in _of(found, "RoleBinding", "ClusterRoleBinding")
    }
    assert {each for each in bound if each[1] in _OF_CUTTING} == {
        ("", "driver-repartition"),
        ("vision", "driver-repartition-pods"),
        ("gpu-operator", "driver-repartition-mig"),
    }
    (file,) = (each["data"]["cluster.yaml"] for each in _of(found, "ConfigMap") if "cluster.yaml" in each["data"])
    assert yaml.safe_load(file)["repartition"] == {}


@pytest.mark.parametrize("jobs", ["checks", "vision"])
def test_the_roles_for_claims_are_given_where_the_cluster_file_has_pods_claim_gpus(jobs: str) -> None:
    file = {"gpuAllocation": "claims", "jobs": {"namespace": jobs}}
    found = objects({"cluster": {"namespaces": ["vision"], "file": file}})
    bound = sorted(
        (each["metadata"].get("namespace", ""), _role(each)) for each in _of(found, "RoleBinding", "ClusterRoleBinding")
    )
    expected = {("", "driver-devices"), ("vision", "driver-claims"), (jobs, "driver-claims")}
    assert [each for each in bound if each[1] in {"driver-claims", "driver-devices"}] == sorted(expected)
    others = objects({"cluster": {"namespaces": ["vision"]}})
    assert not [
        each for each in _of(others, "ClusterRole", "ClusterRoleBinding") if "devices" in each["metadata"]["name"]
    ]


def test_a_new_installation_has_namespaces_and_closed_networks_for_models_and_jobs() -> None:
    found = objects({})
    models, jobs = f"{RELEASE}-models", f"{RELEASE}-jobs"
    made = {each["metadata"]["name"]: each["metadata"] for each in _of(found, "Namespace")}
    assert set(made) == {models, jobs}
    assert {each["labels"]["pod-security.kubernetes.io/enforce"] for each in made.values()} == {"restricted"}
    closed = [each for each in _of(found, "NetworkPolicy") if each["spec"]["podSelector"]["matchLabels"] == MANAGED]
    assert [each["metadata"]["namespace"] for each in closed] == [models, jobs]
    nothing = {"policyTypes": ["Ingress", "Egress"], "ingress": [], "egress": []}
    assert all(each["spec"].items() >= nothing.items() for each in closed)
    bound = {(each["metadata"]["namespace"], _role(each)) for each in _of(found, "RoleBinding")}
    assert bound == {
        *((models, role) for role in ("driver", "driver-access")),
        *((jobs, role) for role in ("driver-jobs", "driver-jobs-network")),
    }
    options = parse_cluster(_file(found)).options
    assert options.jobs_namespace == jobs
    assert options.network is not None
    assert [(each.namespace, each.ports) for each in options.network.egress] == [(NAMESPACE, (8080,))]
    (web,) = (spec for name, spec in pods(found) if name == "fairlead-web")
    assert {"name": "http", "containerPort": 8080} in web["containers"][0]["ports"]


@everywhere
def test_an_upgrade_of_an_earlier_installation_moves_and_closes_nothing(variation: str) -> None:
    given = values(variation)
    found = objects(given, is_upgrade=True)
    assert _of(found, "Namespace") == []
    component = "app.kubernetes.io/component"
    assert [each for each in _of(found, "NetworkPolicy") if each["metadata"]["labels"][component] == "models"] == []
    for account in _of(found, "ServiceAccount"):
        assert "fairlead/models" not in account["metadata"].get("annotations", {})
    if given.get("cluster", {}).get("enabled", True):
        options = parse_cluster(_file(found)).options
        jobs = given.get("cluster", {}).get("file", {}).get("jobs", {}).get("namespace", NAMESPACE)
        assert (options.jobs_namespace, options.network) == (jobs, None)
    said = given.get("cluster", {}).get("namespaces", [NAMESPACE])
    bound = {each["metadata"]["namespace"] for each in _of(found, "RoleBinding")}
    assert bound <= {NAMESPACE, *said}
    assert not [each for each in _of(found, "RoleBinding", "ClusterRole") if "network" in each["metadata"]["name"]]


def test_an_earlier_installation_takes_closed_networks_where_its_values_say_so() -> None:
    egress = [{"to": "10.20.0.0/16", "ports": [443]}]
    given = {
        "cluster": {"namespaces": ["vision"], "file": {"jobs": {"namespace": "checks"}}},
        "networkPolicy": {"models": "closed", "egress": egress, "webFrom": ["ingress"]},
    }
    found = objects(given, is_upgrade=True)
    network = parse_cluster(_file(found)).options.network
    assert isinstance(network, ClosedNetwork)
    assert [str(each.network or each.namespace) for each in network.egress] == [NAMESPACE, "10.20.0.0/16"]
    (web,) = (each for each in _of(found, "NetworkPolicy") if each["metadata"]["name"] == "fairlead-web")
    named = [each.get("namespaceSelector", {}).get("matchLabels", {}) for each in web["spec"]["ingress"][0]["from"]]
    assert {"kubernetes.io/metadata.name": "checks"} in named, "Jobs fetch models from the web"


def test_a_new_installation_with_an_open_network_or_namespaces_of_ones_own() -> None:
    given = {"cluster": {"namespaces": ["vision"], "file": {"jobs": {"namespace": "checks"}}}}
    assert _of(objects(given), "Namespace") == []
    for policy in ({"models": "open"}, {"enabled": False}):
        found = objects({**given, "networkPolicy": policy})
        assert parse_cluster(_file(found)).options.network is None
        assert not [each for each in _of(found, "NetworkPolicy") if each["spec"]["podSelector"] == MANAGED]


def test_who_may_not_read_nodes_has_no_role_for_it() -> None:
    found = objects({"cluster": {"readNodes": False}})
    assert not [each for each in _of(found, "ClusterRole", "ClusterRoleBinding") if "nodes" in each["metadata"]["name"]]


def test_a_control_plane_without_services_here_may_do_nothing_here() -> None:
    found = objects({"cluster": {"enabled": False}})
    assert _of(found, "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding") == []


def test_prometheus_is_asked_by_web_worker_and_watcher_with_the_token_of_its_secret() -> None:
    asking = {
        name: {each["name"]: each for each in container["env"] if each["name"].startswith("FAIRLEAD_PROMETHEUS")}
        for name, spec in pods(
            objects({"prometheus": {"url": "https://prometheus.example.com", "existingSecret": "p"}})
        )
        for container in spec["containers"]
        if "env" in container and name.startswith("fairlead") and "postgresql" not in name
    }
    told = {name: found for name, found in asking.items() if found}
    assert set(told) == {"fairlead-web", "fairlead-worker", "fairlead-watcher"}
    for found in told.values():
        assert found["FAIRLEAD_PROMETHEUS_URL"]["value"] == "https://prometheus.example.com"
        assert found["FAIRLEAD_PROMETHEUS_TOKEN"]["valueFrom"] == {"secretKeyRef": {"name": "p", "key": "token"}}
        assert found["FAIRLEAD_PROMETHEUS_CA"]["valueFrom"]["secretKeyRef"]["optional"] is True


def test_the_watcher_has_what_a_worker_has_for_turns_to_services() -> None:
    found = dict(pods(objects({"prometheus": {"url": "https://prometheus.example.com"}})))
    worker, watcher = (found[f"fairlead-{name}"] for name in ("worker", "watcher"))

    def of(spec: Json) -> tuple[Json, Json, Json]:
        (container,) = spec["containers"]
        env = [each for each in container["env"] if not each["name"].endswith("METRICS_ADDRESS")]
        return spec["volumes"], container["volumeMounts"], env

    assert of(watcher) == of(worker)
    assert watcher["terminationGracePeriodSeconds"] >= 20  # the turns that have begun end in 15 s


def test_models_in_python_run_only_where_the_values_say_so() -> None:
    def file(**cluster: object) -> Json:
        (found,) = (
            each
            for each in objects({"cluster": cluster})
            if each["metadata"]["name"] == f"{RELEASE}-cluster" and each["kind"] == "ConfigMap"
        )
        parsed: Json = yaml.safe_load(found["data"]["cluster.yaml"])
        return parsed

    assert file()["allowPythonModels"] is False
    assert file(allowPythonModels=True)["allowPythonModels"] is True


def test_no_pod_of_the_web_ends_before_another_is_ready_or_while_requests_may_still_come() -> None:
    (web,) = (each for each in _of(objects({}), "Deployment") if each["metadata"]["name"] == "fairlead-web")
    assert web["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    spec = web["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    said = next(word for word in container["command"] if word.startswith("--timeout-graceful-shutdown="))
    pause_s = container["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert pause_s >= 5
    assert pause_s + int(said.partition("=")[2]) < spec["terminationGracePeriodSeconds"]


def test_migrations_come_with_the_rest_at_install_and_before_it_at_an_upgrade() -> None:
    def job(is_upgrade: bool) -> Json:
        found = objects({}, is_upgrade=is_upgrade)
        return next(
            each for each in _of(found, "Job") if each["spec"]["template"]["spec"]["containers"][0]["name"] == "migrate"
        )

    assert "annotations" not in job(is_upgrade=False)["metadata"]
    hook = job(is_upgrade=True)["metadata"]
    assert hook["annotations"]["helm.sh/hook"] == "pre-upgrade"
    assert hook["annotations"]["helm.sh/hook-delete-policy"] == "before-hook-creation,hook-succeeded"
    assert hook["name"] != job(is_upgrade=False)["metadata"]["name"]
    assert job(is_upgrade=True)["spec"]["ttlSecondsAfterFinished"] == 86400, (
        "of one that failed the log is left, for a day"
    )


def test_what_holds_data_stays_at_uninstall_and_nothing_else_does() -> None:
    kept = {
        (each["kind"], each["metadata"]["name"])
        for each in objects({})
        if each["metadata"].get("annotations", {}).get("helm.sh/resource-policy") == "keep"
    }
    claims = {("PersistentVolumeClaim", f"{RELEASE}-{name}") for name in ("artifacts", "state", "model-cache")}
    assert kept == claims | {("Secret", RELEASE), ("Namespace", f"{RELEASE}-models")}


def test_notes_tell_the_next_step() -> None:
    notes = rendered({})["NOTES.txt"]
    assert "token_create" in notes
    assert "port-forward" in notes
    assert "PostgreSQL that came along is for trials" in notes
    exposed = rendered(values("external"))["NOTES.txt"]
    assert "https://fairlead.example.com" in exposed
    assert "port-forward" not in exposed


def _file(found: list[Json]) -> Json:
    """Return the cluster file."""
    (text,) = (each["data"]["cluster.yaml"] for each in _of(found, "ConfigMap") if "cluster.yaml" in each["data"])
    parsed: Json = yaml.safe_load(text)
    return parsed


def _of(found: list[Json], *wanted: str) -> list[Json]:
    return [each for each in found if each["kind"] in wanted]


def _role(binding: Json) -> str:
    return str(binding["roleRef"]["name"]).removeprefix(f"{NAMESPACE}-{RELEASE}-")


def _selected(found: Json) -> dict[str, str]:
    """Return the labels that an object selects pods by; none where it selects none."""
    spec = found.get("spec", {})
    by_kind = {
        "Service": spec.get("selector", {}),
        "PodDisruptionBudget": spec.get("selector", {}).get("matchLabels", {}),
        "NetworkPolicy": spec.get("podSelector", {}).get("matchLabels", {}),
    }
    if by_kind.get(found["kind"], {}) == MANAGED:
        return {}  # pods that the driver makes
    return by_kind.get(found["kind"], {})
