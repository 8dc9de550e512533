"""What is rendered for Kubernetes, compared with files that were looked at, and shown to a real API server.

The base is whole, a feature the difference from it. After a wanted change: `make golden`, then read what changed.
"""

import re
from dataclasses import dataclass, replace
from typing import Any

import pytest
from kubernetes import client, config

from common.errors import InvalidInput
from integrations.clusters.base import (
    DesiredRevision,
    Job,
    JobKind,
    Logged,
    Logger,
    Resources,
    SessionAffinity,
)
from integrations.clusters.kubernetes.api.client import Api
from integrations.clusters.kubernetes.manifests import Manifest, render
from integrations.clusters.kubernetes.manifests.jobs.job import job
from integrations.clusters.kubernetes.options import (
    Addresses,
    GatewayReference,
    ModelCache,
    ModelSource,
    NamespaceGateway,
    Reach,
)
from serving_runtime.shared.egress import networks
from tests._support.golden import BASE, check_feature, check_text, plain
from tests._support.structural.layout import written_all
from tests.cluster._support.definitions import define_keda, define_policies
from tests.cluster.plane import ControlPlane
from tests.integrations._support.control_calls import CLOSED_METHODS, CLOSED_PATHS
from tests.integrations._support.manifests import GOLDEN, given

NAME = "kubernetes.io/metadata.name"
CASES = sorted(path.name.removesuffix(".in.yaml") for path in GOLDEN.glob("*.in.yaml"))
FEATURES = [case for case in CASES if case != BASE]


def rendered(case: str) -> list[Manifest]:
    return render(*given(case), waits=case == "asleep")


def test_there_are_cases() -> None:
    assert len(CASES) >= 3


def test_the_base_is_as_it_was_rendered() -> None:
    check_text(GOLDEN / "base.out.yaml", "the base", written_all(plain(rendered(BASE))))


@pytest.mark.parametrize("feature", FEATURES)
def test_a_feature_is_as_it_was_rendered(feature: str) -> None:
    check_feature(GOLDEN, feature, plain(rendered(BASE)), plain(rendered(feature)))


def test_every_golden_file_has_a_case() -> None:
    of_features = {*(f"{case}.in.yaml" for case in CASES), *(f"{each}.diff.yaml" for each in FEATURES)}
    assert {path.name for path in GOLDEN.iterdir()} == {"base.out.yaml", "replay.out.yaml", *of_features}


@pytest.mark.cluster
@pytest.mark.parametrize("case", CASES)
def test_a_strict_api_server_takes_the_manifests_and_the_restricted_pods(case: str, plane: ControlPlane) -> None:
    namespace = f"golden-{case}"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    core = client.CoreV1Api(config.new_client_from_config(str(plane.kubeconfig)))
    core.create_namespace({"metadata": {"name": namespace, "labels": labels}})
    api = Api(plane.kubeconfig)
    desired, shares, options = given(case)
    with plane.client() as admin:
        if options.keda is not None:
            define_keda(admin)
        if desired.access is not None:
            define_policies(admin)
        for name in {each.pod.priority_class for each in desired.revisions} - {""}:
            made = {"metadata": {"name": name}, "value": 1}
            admin.post("/apis/scheduling.k8s.io/v1/priorityclasses", json=made).raise_for_status()
    pools = {each.name: each.pool and f"{namespace}/warm" for each in desired.revisions}
    there = tuple(replace(each, pool=pools[each.name]) for each in desired.revisions)
    for manifest in render(replace(desired, namespace=namespace, revisions=there), shares, options):
        api.apply(manifest, dry_run=True)
        if manifest["kind"] == "Deployment":
            template = manifest["spec"]["template"]
            pod = {**template, "metadata": {**template["metadata"], "name": "one"}}
            pod["spec"] = {**pod["spec"], "serviceAccountName": "default"}
            core.create_namespaced_pod(namespace, pod, dry_run="All")


@pytest.mark.cluster
@pytest.mark.parametrize("ids", [{}, {"request_id": "1"}, {"result_id": "1"}], ids=["asks", "answers", "makes"])
def test_a_strict_api_server_takes_jobs_and_their_restricted_pods(ids: dict[str, str], plane: ControlPlane) -> None:
    namespace = f"golden-job-{'-'.join(ids).replace('_', '-') or 'asks'}"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    core = client.CoreV1Api(config.new_client_from_config(str(plane.kubeconfig)))
    core.create_namespace({"metadata": {"name": namespace, "labels": labels}})
    options = replace(given("origin")[2], jobs_namespace=namespace, gpu_runtime_image="cuda:1")
    asked = Job(JobKind.BUILD, "file:///x", 60, "sha256:aaaa", "s3://models/digits/", **ids)  # type: ignore[arg-type]
    made = job(replace(asked, resources=Resources(accelerator="nvidia.com/mig-1g.10gb")), "ask", options)
    api = Api(plane.kubeconfig)
    api.apply(made, dry_run=True)
    template = made["spec"]["template"]
    pod = {**template, "metadata": {**template["metadata"], "name": "one"}}
    pod["spec"] = {**pod["spec"], "serviceAccountName": "default"}
    core.create_namespaced_pod(namespace, pod, dry_run="All")
    api.close()


def test_cpu_needs_no_custom_metrics_and_a_metric_of_the_clusters_own_is_refused_without_them() -> None:
    desired, shares, options = given("autoscaled")
    bare = replace(options, custom_metrics=False)
    of_cpu = replace(desired, revisions=desired.revisions[2:3])
    kinds = [each["kind"] for each in render(of_cpu, shares, bare)]
    assert "HorizontalPodAutoscaler" in kinds
    of_queue = replace(desired, revisions=desired.revisions[:1])
    assert "HorizontalPodAutoscaler" not in [each["kind"] for each in render(of_queue, shares, bare)]
    with pytest.raises(
        InvalidInput, match=r"scaleMetric is pods/nv_gpu_utilization, but cluster .* neither"
    ) as refused:
        render(desired, shares, bare)
    assert refused.value.field == "spec.predictor.scaleMetric"


@pytest.mark.cluster
def test_a_field_that_the_api_server_does_not_know_is_refused(plane: ControlPlane) -> None:
    account = rendered("canary")[0]
    with pytest.raises(InvalidInput, match="autoMount"):
        Api(plane.kubeconfig).apply({**account, "autoMount": True}, dry_run=True)


@dataclass(frozen=True)
class FromLater(DesiredRevision):
    """A revision as a later release may have it."""

    news: str = ""


@pytest.mark.parametrize(("domain", "addresses"), [("", Addresses.HOSTS), *(("a.org", each) for each in Addresses)])
@pytest.mark.parametrize("case", ["base", "canary", "group", "preview"])
def test_routes_let_posts_through_to_the_model_alone_and_whole_methods_of_grpc(
    case: str, domain: str, addresses: Addresses
) -> None:
    desired, shares, options = given(case)
    found = _routes(render(desired, shares, replace(options, domain=domain, addresses=addresses)))
    matches = [match for each in found for rule in each["spec"]["rules"] for match in rule["matches"]]
    posted = {match["path"]["value"] for match in matches if match.get("method", "POST") == "POST" and "path" in match}
    below = re.compile(r"(/serving/default/digits(-preview)?)?(/v2/models/digits(/.*)?|/v1/models(/.*)?)")
    assert [path for path in posted if not below.fullmatch(path)] == []
    paths = {(match.get("method", ""), match["path"]["value"]) for match in matches if "path" in match}
    closed = [pair for pair in paths for method, path in CLOSED_PATHS if pair[0] == method and pair[1].endswith(path)]
    assert closed == []
    methods = [match["method"] for match in matches if "path" not in match]
    assert {each["type"] for each in methods} == {"Exact"}
    named = {each["method"] for each in methods}
    assert {"ModelConfig", "ModelStatistics"} <= named
    assert named & set(CLOSED_METHODS) == set()


@pytest.mark.parametrize("case", CASES)
def test_a_rule_that_replaces_a_prefix_has_one_match_as_the_gateway_api_asks(case: str) -> None:
    rules = [rule for each in _routes(rendered(case)) for rule in each["spec"]["rules"]]
    replaced = [
        rule
        for rule in rules
        for each in rule.get("filters", ())
        if each["type"] == "URLRewrite" and each["urlRewrite"]["path"]["type"] == "ReplacePrefixMatch"
    ]
    assert bool(replaced) is (case != "pooled"), "replicas of a pool get the path that the client sent"
    assert {len(rule["matches"]) for rule in replaced} <= {1}


def test_a_service_at_rest_has_two_routes_with_six_rules() -> None:
    found = _routes(rendered("base"))
    assert [each["kind"] for each in found] == ["GRPCRoute", "HTTPRoute"]
    assert [len(each["spec"]["rules"]) for each in found] == [2, 4]
    assert sum(len(rule["matches"]) for each in found for rule in each["spec"]["rules"]) == 15


def test_by_host_alone_it_has_two_routes_with_four_rules_of_that_host() -> None:
    desired, shares, options = given("base")
    found = _routes(render(desired, shares, replace(options, domain="a.org", addresses=Addresses.HOSTS)))
    assert [(each["kind"], each["metadata"]["name"]) for each in found] == [
        ("GRPCRoute", "digits"),
        ("HTTPRoute", "digits"),
    ]
    assert [each["spec"]["hostnames"] for each in found] == [["digits.default.a.org"]] * 2
    assert [len(each["spec"]["rules"]) for each in found] == [2, 2]


def test_a_service_that_moves_is_attached_to_both_gateways_and_both_reach_its_pods() -> None:
    desired, shares, options = given("base")
    new = NamespaceGateway(
        GatewayReference("new", "others", "web", "rpc", "new-proxies"), "https://new.test", ("def*",)
    )
    moving = replace(options, gateways=(new,), leaving=("default",)).of_namespace("default")
    made = render(desired, shares, moving)
    parents = {each["kind"]: each["spec"]["parentRefs"] for each in _routes(made)}
    places = {kind: [(each["name"], each.get("sectionName", "")) for each in refs] for kind, refs in parents.items()}
    assert places == {
        "GRPCRoute": [("new", "rpc"), ("gateway", "")],
        "HTTPRoute": [("new", "web"), ("gateway", "")],
    }
    [policy] = [each for each in made if each["kind"] == "NetworkPolicy"]
    callers = policy["spec"]["ingress"][0]["from"]
    assert [each["namespaceSelector"]["matchLabels"][NAME] for each in callers] == ["new-proxies", "gateways"]
    moved = render(desired, shares, replace(options, gateways=(new,)).of_namespace("default"))
    assert [len(each["spec"]["parentRefs"]) for each in _routes(moved)] == [1, 1]


def test_a_version_has_its_route_while_others_are_there_and_its_requests_where_they_answer() -> None:
    desired, _, options = given("canary")
    names = ("digits-version-1", "digits-version-2")

    def order(shares: dict[str, int]) -> list[str]:
        return [each["metadata"]["name"] for each in _routes(render(desired, shares, options)) if _is_open(each)]

    assert [name for name in order({"digits-00001": 100}) if name in names] == ["digits-version-2"]
    assert [name for name in order({"digits-00001": 90, "digits-00002": 10}) if name in names] == [*names]
    assert [name for name in order({"digits-00002": 100}) if name in names] == ["digits-version-1"]
    closed = [each for each in _routes(render(desired, {"digits-00001": 100}, options)) if not _is_open(each)]
    assert closed[-1]["metadata"]["name"] == "digits-version-1", "after the service's own, whose requests it gives back"
    assert closed[-1]["spec"]["rules"][0]["backendRefs"][0]["name"] == "digits-00001"


def test_requests_that_name_a_version_are_not_copied_to_another() -> None:
    desired, shares, options = given("shadow")
    stable, shadow = desired.revisions
    of_two = replace(desired, revisions=(stable, replace(shadow, model_version="2")))
    opened = {each["metadata"]["name"] for each in _routes(render(of_two, shares, options)) if _is_open(each)}
    assert {"digits-version-1", "digits-version-2"} <= opened
    of_one = {each["metadata"]["name"] for each in _routes(render(desired, shares, options))}
    assert of_one == {"digits", "digits-match"}, "all of the requests are that version's"


def _routes(manifests: list[Manifest]) -> list[Manifest]:
    return [each for each in manifests if each["kind"].endswith("Route")]


def _is_open(route: Manifest) -> bool:
    headers = [match.get("headers", ()) for rule in route["spec"]["rules"] for match in rule["matches"]]
    return not all(any(each["name"] == "fairlead-group" for each in found) for found in headers)


def test_what_the_driver_does_not_know_is_refused_by_name() -> None:
    desired, shares, options = given("canary")
    revision = FromLater("digits-00001", "digits", "1", "file:///a", "sha256:0", 1, 100, news="something")
    with pytest.raises(InvalidInput, match="news cannot be honoured on Kubernetes yet"):
        render(replace(desired, revisions=(revision,)), shares, options)


@pytest.mark.parametrize("missing", ["control_plane_url", "name", "payloads_folder"])
def test_a_tap_is_refused_where_pods_have_nowhere_to_bring_what_they_record(missing: str) -> None:
    desired, shares, options = given("tapped")
    with pytest.raises(InvalidInput) as caught:
        render(desired, shares, replace(options, **{missing: ""}))
    assert caught.value.field in (missing, "control_plane_url")


def test_a_tap_that_comes_and_goes_changes_one_config_map_alone() -> None:
    desired, shares, options = given("tapped")
    without = replace(desired, revisions=tuple(replace(each, tap=None) for each in desired.revisions))
    before, after = render(desired, shares, options), render(without, shares, options)
    changed = [new for old, new in zip(before, after, strict=True) if old != new]
    assert [(each["kind"], each["data"]) for each in changed] == [("ConfigMap", {})]


def test_sessions_are_refused_with_what_to_do_instead() -> None:
    desired, shares, options = given("canary")
    desired = replace(desired, affinity=SessionAffinity("digits-00002", header="x-session"))
    with pytest.raises(InvalidInput, match=r"even at weight 0.*; leave it out, or give the first clients the canary"):
        render(desired, shares, options)


def test_an_artifact_that_no_pod_can_reach_is_refused() -> None:
    desired, shares, options = given("canary")
    with pytest.raises(InvalidInput, match="it must be in /elsewhere"):
        render(desired, shares, replace(options, artifacts_root="/elsewhere"))


def test_a_nodes_folder_is_shared_by_its_pods() -> None:
    desired, shares, options = given("registry")
    changed = replace(options, model_cache=ModelCache(node_folder="/var/cache/fairlead", max_bytes=5))
    spec = _pod(render(desired, shares, changed))
    assert {"name": "cache", "hostPath": {"path": "/var/cache/fairlead", "type": "Directory"}} in spec["volumes"]
    assert "--cache-max-bytes=5" in spec["initContainers"][0]["args"]


def test_copies_in_a_bucket_are_found_by_their_digest() -> None:
    desired, shares, options = given("origin")
    changed = replace(options, models_from=ModelSource.BUCKET, bucket="s3://models/fairlead")
    (prepare, *_) = _pod(render(desired, shares, changed))["initContainers"]
    digest = desired.revisions[0].artifact_digest
    assert f"--origin=s3://models/fairlead/{digest.removeprefix('sha256:')}/" in prepare["args"]
    assert any(each.startswith("--registry=") for each in prepare["args"]), "until the copy is there"
    assert prepare["envFrom"] == [{"secretRef": {"name": options.origin_secret}}]


@pytest.mark.parametrize(
    "places",
    [pytest.param({}, id="nowhere"), pytest.param({"claim": "a", "node_folder": "/b"}, id="in two places")],
)
def test_a_cache_is_in_one_place(places: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match="a claim or a node_folder, one of the two"):
        ModelCache(**places)  # type: ignore[arg-type]


def test_only_the_step_that_fetches_has_a_token_and_the_secret() -> None:
    for case in ("registry", "origin"):
        spec = _pod(rendered(case))
        (runtime,), (prepare,) = spec["containers"], spec["initContainers"]
        assert "control-plane" in [mount["name"] for mount in prepare["volumeMounts"]]
        assert {"control-plane", "cache"} & {mount["name"] for mount in runtime["volumeMounts"]} == set()
        assert "envFrom" not in runtime


def test_where_pods_cannot_reach_the_control_plane_they_cannot_fetch_from_it() -> None:
    desired, shares, options = given("registry")
    with pytest.raises(InvalidInput, match="control_plane_url is empty"):
        render(desired, shares, replace(options, control_plane_url=""))


def test_without_a_registry_an_origin_stands_alone() -> None:
    desired, shares, options = given("origin")
    spec = _pod(render(desired, shares, replace(options, control_plane_url="")))
    assert "control-plane" not in [volume["name"] for volume in spec["volumes"]]
    assert spec["initContainers"][0]["args"][0] == "--origin=s3://models/digits/"


def _pod(manifests: list[Manifest]) -> dict[str, Any]:
    spec: dict[str, Any] = next(each for each in manifests if each["kind"] == "Deployment")["spec"]["template"]["spec"]
    return spec


def test_no_manifest_says_a_number_of_replicas() -> None:
    assert [each["metadata"]["name"] for each in rendered("canary") if "replicas" in each.get("spec", {})] == []


def test_metrics_are_for_the_api_servers_networks_alone_where_they_are_named() -> None:
    desired, given_shares, options = given("canary")
    options = replace(
        options,
        reach=Reach.API_SERVER,
        api_server_networks=("10.0.0.0/24", "fd00::/64"),
        monitoring_namespaces=("watching",),
    )
    policy = next(each for each in render(desired, given_shares, options) if each["kind"] == "NetworkPolicy")
    _, api_server, monitoring = policy["spec"]["ingress"]
    assert api_server == {
        "from": [{"ipBlock": {"cidr": "10.0.0.0/24"}}, {"ipBlock": {"cidr": "fd00::/64"}}],
        "ports": [{"port": 8002, "protocol": "TCP"}],
    }
    assert monitoring["from"] == [{"namespaceSelector": {"matchLabels": {NAME: "watching"}}}]


@pytest.mark.parametrize(
    ("reach", "who"),
    [
        pytest.param(Reach.DIRECT, {"from": [{"namespaceSelector": {"matchLabels": {NAME: "watching"}}}]}, id="direct"),
        pytest.param(Reach.API_SERVER, {}, id="through the API server, whose address is in no namespace"),
    ],
)
def test_metrics_can_be_read_by_whoever_reads_them_and_requests_only_come_from_the_gateway(
    reach: Reach, who: dict[str, Any]
) -> None:
    desired, given_shares, options = given("canary")
    options = replace(options, reach=reach, monitoring_namespaces=("watching",))
    policy = next(each for each in render(desired, given_shares, options) if each["kind"] == "NetworkPolicy")
    requests, pages = policy["spec"]["ingress"]
    assert pages == {**who, "ports": [{"port": 8002, "protocol": "TCP"}]}
    assert [each["port"] for each in requests["ports"]] == [8000, 8001]
    assert len(requests["from"]) == 1


@pytest.mark.parametrize("case", ["registry", "origin"])
def test_a_job_takes_its_model_from_where_replicas_do_and_shows_which_it_may_have(case: str) -> None:
    _, _, options = given(case)
    asked = Job(JobKind.INSPECT, "file:///x", 60, artifact_digest="sha256:aaaa", artifact_origin="s3://models/digits/")
    template = job(asked, "ask", options)["spec"]["template"]
    (prepare,) = template["spec"]["initContainers"]
    assert ("--origin=s3://models/digits/" in prepare["args"]) == (case == "origin")
    assert any(each.endswith("/workloads/artifacts/sha256:aaaa") for each in prepare["args"])
    assert not any("cache" in each for each in prepare["args"])
    without = {"eks.amazonaws.com/skip-containers": "ask"} if case == "origin" else {}
    assert template["metadata"]["annotations"] == {"fairlead/artifact-digest": "sha256:aaaa", **without}
    assert "control-plane" not in [each["name"] for each in template["spec"]["containers"][0]["volumeMounts"]]


@pytest.mark.parametrize("case", ["slice", "registry"])
def test_what_a_job_makes_is_brought_with_the_pods_own_token(case: str) -> None:
    _, _, options = given(case)
    options = replace(options, name="eu", control_plane_url="https://fairlead.example/", gpu_runtime_image="cuda:1")
    options = replace(options, allow_python_models=True, control_plane_ca_config_map="authority")
    asked = Job(
        JobKind.BUILD,
        "file:///var/lib/fairlead/artifacts/aaaa",
        60,
        artifact_digest="sha256:aaaa",
        arguments=("--target=tensorrt",),
        result_id="1234",
        resources=Resources(accelerator="nvidia.com/mig-1g.10gb", products=("NVIDIA-A100",)),
    )
    template = job(asked, "ask", options)["spec"]["template"]
    assert template["metadata"]["annotations"]["fairlead/result"] == "1234"
    (prepare, ask), (upload,) = template["spec"]["initContainers"], template["spec"]["containers"]
    assert ask["args"] == ["build", "/mnt/models/model", "--target=tensorrt", "--output=/mnt/made", "--json"]
    assert upload["command"][-1] == "upload"
    assert upload["args"] == [
        "/mnt/made",
        "--to=https://fairlead.example/api/v1/clusters/eu/workloads/results/1234",
        "--token-file=/var/run/secrets/fairlead/token",
        "--certificate-authority=/var/run/secrets/fairlead/ca.crt",
    ]
    assert ask["resources"]["limits"]["nvidia.com/mig-1g.10gb"] == "1"
    assert not {"nvidia.com/mig-1g.10gb"} & {*prepare["resources"]["limits"], *upload["resources"]["limits"]}
    assert {prepare["image"], ask["image"], upload["image"]} == {"cuda:1"}
    assert {each["name"] for each in ask["volumeMounts"]} == {"models", "tmp", "shm", "made"}
    assert {each["name"] for each in upload["volumeMounts"]} == {"made", "upload-tmp", "control-plane"}
    volumes = [each["name"] for each in template["spec"]["volumes"]]
    assert sorted(set(volumes)) == sorted(volumes)
    mounted = {each["name"] for container in (prepare, ask, upload) for each in container["volumeMounts"]}
    assert mounted == set(volumes)
    (term,) = template["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    assert term["matchExpressions"][0]["values"] == ["NVIDIA-A100"]


@pytest.mark.parametrize("case", ["slice", "registry"])
def test_a_request_is_fetched_with_the_pods_own_token_and_is_not_in_the_job(case: str) -> None:
    _, _, options = given(case)
    options = replace(options, name="eu", control_plane_url="https://fairlead.example/", control_plane_ca_config_map="")
    artifact = "file:///var/lib/fairlead/artifacts/aaaa"
    asked = Job(JobKind.TRY, artifact, 60, artifact_digest="sha256:aaaa", request=b"row of alice", request_id="1234")
    made = job(asked, "ask", options)
    template = made["spec"]["template"]
    assert template["metadata"]["annotations"] == {
        "fairlead/artifact-digest": "sha256:aaaa",
        "fairlead/request": "1234",
    }
    (prepare,), (ask,) = template["spec"]["initContainers"], template["spec"]["containers"]
    assert ask["args"] == ["try", "/mnt/models/model", "--request=/mnt/request/request.json", "--json"]
    asks = "--request-from=https://fairlead.example/api/v1/clusters/eu/workloads/requests/1234"
    assert {asks, "--request=/mnt/request/request.json"} <= set(prepare["args"])
    assert prepare["args"].count("--token-file=/var/run/secrets/fairlead/token") == 1
    assert [each["name"] for each in prepare["volumeMounts"]].count("control-plane") == 1
    assert {"name": "request", "mountPath": "/mnt/request", "readOnly": True} in ask["volumeMounts"]
    assert {each["name"] for each in ask["volumeMounts"]} == {"models", "tmp", "shm", "request"}
    assert [each["name"] for each in template["spec"]["volumes"]].count("control-plane") == 1
    assert "alice" not in str(made)
    with pytest.raises(InvalidInput, match="control_plane_url is empty"):
        job(asked, "ask", replace(options, control_plane_url=""))


def test_a_job_whose_pod_cannot_bring_anything_is_refused() -> None:
    _, _, options = given("slice")
    asked = Job(JobKind.BUILD, "file:///var/lib/fairlead/artifacts/aaaa", 60, result_id="1234")
    with pytest.raises(InvalidInput, match="control_plane_url is empty"):
        job(asked, "ask", replace(options, control_plane_url=""))


@pytest.mark.parametrize("allowed", [True, False], ids=["allowed", "not allowed"])
def test_models_in_python_run_only_where_the_operator_allows_them(allowed: bool) -> None:
    desired, shares, options = given("canary")
    options = replace(options, allow_python_models=allowed)
    flag = "--allow-python-models=true"
    assert (flag in _pod(render(desired, shares, options))["containers"][0]["args"]) is allowed
    root = options.artifacts_root
    asked = job(Job(JobKind.INSPECT, f"file://{root}/aaaa", 60, artifact_digest="sha256:aaaa"), "ask", options)
    assert (flag in asked["spec"]["template"]["spec"]["containers"][0]["args"]) is allowed


def test_a_question_may_be_asked_on_a_slice() -> None:
    _, _, options = given("slice")
    elsewhere = replace(options, job_node_selector={"pool": "cpu"}, job_tolerations=({"key": "jobs"},))
    asked = Job(
        JobKind.PROFILE,
        "file:///var/lib/fairlead/artifacts/aaaa",
        60,
        artifact_digest="sha256:aaaa",
        resources=Resources(accelerator="nvidia.com/mig-1g.10gb"),
    )
    pod = job(asked, "ask", elsewhere)["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["resources"]["limits"]["nvidia.com/mig-1g.10gb"] == "1"
    assert container["image"] == options.gpu_runtime_image
    assert "--model-config-name=1g.10gb" in container["args"]
    assert [each["key"] for each in pod["tolerations"]] == ["nvidia.com/gpu", "jobs"]
    assert "nodeSelector" not in pod


@pytest.mark.parametrize(
    ("url", "written"),
    [
        pytest.param("http://dumper/x", "http://dumper.default.svc/x", id="a Service"),
        pytest.param("http://dumper.default:8080/", "http://dumper.default.svc:8080/", id="with its namespace"),
        pytest.param("http://dumper.default.svc.cluster.local", "", id="in full"),
    ],
)
def test_a_logger_that_is_a_service_of_the_own_namespace_may_be_private(url: str, written: str) -> None:
    flags = _logger_flags(url)
    assert f"--payload-logger={written or url}" in flags
    assert any("allowed-networks=10.0.0.0/8,172.16.0.0/12,192.168.0.0/16" in flag for flag in flags)


@pytest.mark.parametrize(
    "url",
    [
        "http://10.0.0.1/",
        "http://0xa000001/",
        "http://[fd00::1]/",
        "http://dumper.other.svc/",
        "http://dumper.default.example.org/",
        "http://kubernetes.default.svc.cluster.local.example.org/",
        "http://-dumper/",
    ],
)
def test_any_other_logger_is_public_or_allowed_by_the_operator(url: str) -> None:
    flags = _logger_flags(url)
    assert (f"--payload-logger={url}" in flags, "--payload-logger-allowed-networks=10.7.0.0/16" in flags) == (
        True,
        True,
    )


def _logger_flags(url: str) -> list[str]:
    desired, shares, options = given("logger")
    (revision,) = desired.revisions
    desired = replace(desired, revisions=(replace(revision, logger=Logger(url, Logged.ALL)),))
    args = _pod(render(desired, shares, replace(options, egress_allowed=networks("10.7.0.0/16"))))["containers"][0][
        "args"
    ]
    return [arg for arg in args if arg.startswith("--payload-logger")]
