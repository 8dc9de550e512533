"""Values for platforms with rules of their own: accounts, roles, ids, proxies, labels, volumes and sidecars."""

from pathlib import Path

import pytest
import yaml

from integrations.clusters.kubernetes import rbac
from tests.charts.chart import CHART, NAMESPACE, RELEASE, Json, chart_where, objects, pods, values

DEFINITIONS = Path(rbac.__file__).with_name("crds.yaml")
DEPLOYMENTS = {f"{RELEASE}-{name}" for name in ("web", "worker", "beat", "watcher")}
JOBS = {f"{RELEASE}-migrations-1", f"{RELEASE}-cluster"}
TRIAL_SERVERS = {f"{RELEASE}-postgresql", f"{RELEASE}-redis"}


def own_pods(given: Json) -> dict[str, Json]:
    """Return the specs of the control plane's own pods, by the name of what makes them."""
    return {name: spec for name, spec in pods(objects(given)) if name not in TRIAL_SERVERS}


def roles_of(found: list[Json]) -> set[tuple[str, str]]:
    """Return namespace and role of each RoleBinding."""
    prefix = f"{NAMESPACE}-{RELEASE}-"
    return {
        (each["metadata"]["namespace"], each["roleRef"]["name"].removeprefix(prefix))
        for each in found
        if each["kind"] == "RoleBinding"
    }


def env_of(spec: Json) -> dict[str, str]:
    (container, *_) = spec["containers"]
    return {each["name"]: each.get("value", "") for each in container["env"]}


def test_reading_pods_through_the_api_server_has_its_roles_where_services_run() -> None:
    found = objects({"cluster": {"namespaces": ["vision", "text"], "file": {"reach": "apiServer"}}})
    roles = {"driver-metrics", "driver-replays"}
    bound = {each for each in roles_of(found) if each[1] in roles}
    assert bound == {(namespace, role) for namespace in ("vision", "text") for role in roles}
    made = {
        each["metadata"]["name"].removeprefix("platform-fairlead-") for each in found if each["kind"] == "ClusterRole"
    }
    assert roles <= made


def test_without_cluster_roles_every_right_is_in_the_namespaces_of_services_and_jobs() -> None:
    namespaced, whole = values("namespaced"), values("namespaced") | {"rbac": {"useClusterRole": True}}
    found, usual = objects(namespaced), objects(whole)
    kinds = {each["kind"] for each in found}
    assert not kinds & {"ClusterRole", "ClusterRoleBinding", "Namespace"}
    assert roles_of(found) == {(namespace, f"{role}-role") for namespace, role in roles_of(usual)}
    rules = {f"{each['metadata']['name']}-role": each["rules"] for each in usual if each["kind"] == "ClusterRole"}
    roles = [each for each in found if each["kind"] == "Role"]
    assert {each["metadata"]["namespace"] for each in roles} == {"vision"}
    assert len(roles) == len(roles_of(found))
    assert all(each["rules"] == rules[each["metadata"]["name"]] for each in roles)


def test_custom_resources_are_those_of_the_driver_and_stay_at_uninstall() -> None:
    assert (CHART / "files" / "crds.yaml").read_text() == DEFINITIONS.read_text()
    *kinds, role = yaml.safe_load_all(DEFINITIONS.read_text())
    found = objects({"cluster": {"customResources": True}})
    made = {each["metadata"]["name"]: each["spec"] for each in found if each["kind"] == "CustomResourceDefinition"}
    assert made == {each["metadata"]["name"]: each["spec"] for each in kinds}
    kept = [each["metadata"]["annotations"] for each in found if each["metadata"]["name"] in made]
    assert kept == [{"helm.sh/resource-policy": "keep"}] * len(kinds)
    rules = {each["metadata"]["name"]: each["rules"] for each in found if each["kind"] == "ClusterRole"}
    assert rules[f"{NAMESPACE}-{RELEASE}-objects"] == role["rules"]
    (file,) = (
        each["data"]["cluster.yaml"]
        for each in found
        if each["metadata"]["name"] == f"{RELEASE}-cluster" and "data" in each
    )
    assert yaml.safe_load(file)["customResources"] is True


def test_following_objects_of_kserve_takes_a_role_of_its_own() -> None:
    copy = CHART / "files" / "kserve_role.yaml"
    assert copy.read_text() == DEFINITIONS.with_name("kserve_role.yaml").read_text()
    name = f"{NAMESPACE}-{RELEASE}-kserve-objects"

    def rules_of(values: dict[str, object]) -> dict[str, object]:
        found = objects({"cluster": {"customResources": True, **values}})
        return {each["metadata"]["name"]: each["rules"] for each in found if each["kind"] == "ClusterRole"}

    assert name not in rules_of({})
    assert rules_of({"kserveObjects": True})[name] == yaml.safe_load(copy.read_text())["rules"]


def test_an_administrator_may_make_the_roles() -> None:
    found = objects({"rbac": {"create": False}})
    kinds = {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}
    assert [each["kind"] for each in found if each["kind"] in kinds] == []


@pytest.mark.parametrize("account", [{"create": False, "name": "robot"}, {"name": "robot"}], ids=["given", "renamed"])
def test_an_upgrade_with_another_service_account_keeps_the_namespaces(account: Json, tmp_path: Path) -> None:
    given = {"serviceAccount": account}
    first = objects(given)
    (defaults,) = (each for each in first if each["metadata"]["name"] == f"{RELEASE}-defaults")
    chart = chart_where(tmp_path, {f"ConfigMap/{RELEASE}-defaults": defaults})
    made = objects(given, is_upgrade=True, chart_folder=chart)
    namespaces = [each["metadata"]["name"] for each in made if each["kind"] == "Namespace"]
    assert namespaces == [f"{RELEASE}-models", f"{RELEASE}-jobs"]
    usual = objects({}, is_upgrade=True, chart_folder=chart)
    assert [each["metadata"]["name"] for each in usual if each["kind"] == "Namespace"] == namespaces


def test_every_pod_has_the_service_account_and_bindings_name_it() -> None:
    found = objects({"serviceAccount": {"create": False, "name": "robot"}})
    assert {spec["serviceAccountName"] for name, spec in pods(found) if name not in TRIAL_SERVERS} == {"robot"}
    subjects = [each["subjects"] for each in found if each["kind"].endswith("RoleBinding")]
    assert subjects
    assert all(each == [{"kind": "ServiceAccount", "name": "robot", "namespace": NAMESPACE}] for each in subjects)


def test_migrations_of_an_upgrade_do_not_wait_for_a_service_account_that_comes_after_them(tmp_path: Path) -> None:
    def account(folder: str, *there: str) -> str:
        (tmp_path / folder).mkdir()
        chart = chart_where(tmp_path / folder, {f"ServiceAccount/{name}": {"metadata": {}} for name in there})
        made = dict(pods(objects({"serviceAccount": {"name": "robot"}}, is_upgrade=True, chart_folder=chart)))
        return str(made[f"{RELEASE}-migrations-2"]["serviceAccountName"])

    assert account("first", "default", RELEASE) == "default"
    assert account("later", "default", "robot") == "robot"
    assert account("unknown") == "robot", "where the chart is rendered without the cluster"


def test_openshift_chooses_the_ids_of_every_pod() -> None:
    ids = {"runAsUser": None, "runAsGroup": None, "fsGroup": None}
    for name, spec in pods(objects({"podSecurityContext": ids})):
        assert not ids.keys() & spec["securityContext"].keys(), name
        assert spec["securityContext"]["runAsNonRoot"] is True, name


def test_ids_of_a_range_are_whole_numbers() -> None:
    for name, spec in own_pods({"podSecurityContext": {"runAsUser": 1000680000, "fsGroup": 1000680000}}).items():
        assert spec["securityContext"]["runAsUser"] == 1000680000, name
    for name, spec in pods(objects({"podSecurityContext": {"runAsUser": 1000680000}})):
        assert name not in TRIAL_SERVERS or spec["securityContext"]["runAsUser"] == 999, "its image has that user"


def test_a_proxy_is_used_by_every_pod_but_never_for_the_cluster_itself() -> None:
    proxy = {"httpsProxy": "http://proxy.example.com:3128", "noProxy": ".example.com"}
    for name, spec in own_pods({"proxy": proxy}).items():
        env = env_of(spec)
        assert env["HTTPS_PROXY"] == "http://proxy.example.com:3128", name
        assert "HTTP_PROXY" not in env
        without = env["NO_PROXY"].split(",")
        assert {"localhost", "$(KUBERNETES_SERVICE_HOST)", ".svc", RELEASE, ".example.com"} <= set(without), name


def test_a_proxy_with_a_password_comes_from_a_secret() -> None:
    variable = {"name": "HTTPS_PROXY", "valueFrom": {"secretKeyRef": {"name": "proxy", "key": "url"}}}
    for spec in own_pods({"proxy": {"noProxy": ".example.com"}, "extraEnv": [variable]}).values():
        assert variable in spec["containers"][0]["env"]
        assert env_of(spec)["NO_PROXY"].endswith(f",{RELEASE},.example.com")


def test_authorities_are_mounted_where_the_variables_name_them() -> None:
    for name, spec in own_pods({"caBundle": {"secret": "authorities", "key": "bundle.pem"}}).items():
        env, (container, *_) = env_of(spec), spec["containers"]
        assert env["SSL_CERT_FILE"] == env["REQUESTS_CA_BUNDLE"] == "/etc/fairlead/ca-bundle/ca.crt", name
        (mount,) = (each for each in container["volumeMounts"] if each["name"] == "ca-bundle")
        assert mount["mountPath"] == "/etc/fairlead/ca-bundle"
        (volume,) = (each for each in spec["volumes"] if each["name"] == "ca-bundle")
        assert volume["secret"] == {"secretName": "authorities", "items": [{"key": "bundle.pem", "path": "ca.crt"}]}


def test_kubeconfigs_are_where_clusters_are_reached_from() -> None:
    found = own_pods({"kubeconfigSecret": "others"})
    having = {name for name, spec in found.items() if "FAIRLEAD_KUBECONFIG_FOLDER" in env_of(spec)}
    assert having == {f"{RELEASE}-{name}" for name in ("web", "worker", "watcher")}
    assert having == {
        name for name, spec in found.items() if "kubeconfigs" in {each["name"] for each in spec["volumes"]}
    }


def test_sidecars_run_beside_deployments_and_init_containers_before_every_container() -> None:
    sidecar, first = {"name": "ship", "image": "ship:1"}, {"name": "sql", "image": "sql:1", "restartPolicy": "Always"}
    found = own_pods({"extraContainers": [sidecar], "extraInitContainers": [first]})
    assert {name for name, spec in found.items() if sidecar in spec["containers"]} == DEPLOYMENTS
    assert found.keys() > DEPLOYMENTS | JOBS
    assert all(spec["initContainers"][0] == first for spec in found.values())


def test_pods_of_each_deployment_spread_by_their_own_labels() -> None:
    zones = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
    for each in objects({"topologySpreadConstraints": [zones]}):
        if each["kind"] == "Deployment" and each["metadata"]["name"] in DEPLOYMENTS:
            (spread,) = each["spec"]["template"]["spec"]["topologySpreadConstraints"]
            assert spread == zones | {"labelSelector": each["spec"]["selector"]}


def test_every_object_and_pod_has_the_common_labels_and_annotations() -> None:
    labels, annotations = {"cost-center": "ml"}, {"example.com/owner": "ml"}
    given = values("monitored") | {"commonLabels": labels, "commonAnnotations": annotations}
    given["expose"] = {"kind": "ingress"}
    for is_upgrade in (False, True):
        found = objects(given, is_upgrade=is_upgrade) + objects({**given, "expose": values("monitored")["expose"]})
        of_pods = [each["spec"]["template"] for each in found if "template" in each.get("spec", {})]
        for each in (*found, *of_pods):
            metadata = each["metadata"]
            assert labels.items() <= metadata["labels"].items(), metadata
            assert annotations.items() <= metadata["annotations"].items(), metadata


def test_labels_of_monitors_win_over_the_common_ones() -> None:
    given = values("monitored") | {"commonLabels": {"release": "fairlead"}}
    monitors = [each for each in objects(given) if each["kind"].endswith("Monitor")]
    assert {each["metadata"]["labels"]["release"] for each in monitors} == {"prometheus"}


def test_a_load_balancer_leads_to_the_web_without_its_metrics() -> None:
    notes = {"example.com/scheme": "internal"}
    found = objects({"web": {"service": {"type": "LoadBalancer", "annotations": notes}}})
    services = {each["metadata"]["name"]: each for each in found if each["kind"] == "Service"}
    outside, inside = services[f"{RELEASE}-web"], services[RELEASE]
    assert outside["spec"]["type"] == "LoadBalancer"
    assert [each["name"] for each in outside["spec"]["ports"]] == ["http"]
    assert outside["metadata"]["annotations"] == notes
    assert "type" not in inside["spec"]
    assert "annotations" not in inside["metadata"]
    (alone,) = (
        each
        for each in objects({"web": {"service": {"annotations": notes}}})
        if each["kind"] == "Service" and each["metadata"]["name"] == RELEASE
    )
    assert alone["metadata"]["annotations"] == notes


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ({"repository": "a/runtime"}, "a/runtime:0.1.0-cuda"),
        ({"repository": "a/runtime", "tag": "2"}, "a/runtime:2"),
        ({"repository": "a/runtime", "digest": "sha256:" + "1" * 64}, "a/runtime@sha256:" + "1" * 64),
    ],
)
def test_the_image_for_gpus_is_in_the_cluster_file(image: Json, expected: str) -> None:
    found = objects({"cluster": {"gpuRuntimeImage": image}})
    (text,) = (each["data"]["cluster.yaml"] for each in found if "cluster.yaml" in each.get("data", {}))
    assert f"gpuRuntimeImage: {expected}\n" in text
