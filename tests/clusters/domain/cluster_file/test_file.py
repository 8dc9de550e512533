"""What a cluster file says, and how it is refused: by the dotted name of the field at fault."""

import copy
import re
from ipaddress import ip_network
from typing import Any

import pytest
import yaml

from clusters.domain.cluster_file import Connection, PrometheusServer, Way, parse_cluster, without_secrets
from common.errors import InvalidInput
from integrations.clusters.base import Resources
from integrations.clusters.kubernetes.access import Credentials
from integrations.clusters.kubernetes.options import (
    Addresses,
    ClosedNetwork,
    Destination,
    GatewayReference,
    GpuAllocation,
    Keda,
    LogFormat,
    ModelCache,
    ModelSource,
    NamespaceGateway,
    Options,
    Reach,
    Repartition,
    Telemetry,
    WakerReference,
)
from tests.deployments._support.cluster_files import LEAST, MOST, pem

KUBECONFIG: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "eu",
    "preferences": {},
    "clusters": [
        {"name": "eu", "cluster": {"server": "https://eu.example.com:6443/", "certificate-authority-data": pem("CA")}},
        {"name": "us", "cluster": {"server": "https://us.example.com", "tls-server-name": "kubernetes"}},
    ],
    "users": [
        {"name": "robot", "user": {"token": "secret-of-robot"}},
        {"name": "cert", "user": {"client-certificate-data": pem("CERT"), "client-key-data": pem("KEY")}},
        {"name": "aws", "user": {"exec": {"command": "aws"}}},
    ],
    "contexts": [
        {"name": "eu", "context": {"cluster": "eu", "user": "robot", "namespace": "models"}},
        {"name": "us", "context": {"cluster": "us", "user": "cert"}},
        {"name": "aws", "context": {"cluster": "us", "user": "aws"}},
    ],
}


def changed(path: str, value: object, document: dict[str, Any] = MOST) -> dict[str, Any]:
    result = copy.deepcopy(document)
    *parents, last = path.split(".")
    inner = result
    for name in parents:
        inner = inner[name]
    inner[last] = value
    return result


def test_the_least_a_file_can_say() -> None:
    file = parse_cluster(LEAST)
    assert (file.name, file.connection, file.gateway_url) == (
        "production",
        Connection(Way.IN_CLUSTER),
        "https://models.example.com",
    )
    image, claim, root = LEAST["runtimeImage"], "models", "/var/lib/fairlead/artifacts"
    assert file.options == Options(GatewayReference("models", "gateways"), image, claim, root, name="production")
    assert parse_cluster({**LEAST, "repartition": {}}).options.repartition == Repartition("gpu-operator", 120)


def test_a_file_is_read_field_by_field() -> None:
    options = parse_cluster(MOST).options
    assert options == Options(
        gpu_allocation=GpuAllocation.CLAIMS,
        queue_names=("models", "urgent"),
        gateway=GatewayReference("models", "gateways", "http", "grpc", "envoy-gateway-system"),
        rate_limits=True,
        runtime_image=MOST["runtimeImage"],
        artifacts_claim="models",
        artifacts_root="/var/lib/fairlead/artifacts",
        models_from=ModelSource.ORIGIN,
        model_cache=ModelCache("model-cache", "", 50 * 2**30),
        origin_secret="bucket-credentials",
        service_account_annotations={"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/models"},
        allow_python_models=True,
        gpu_runtime_image="registry.example.com/serving-runtime-cuda@sha256:0",
        domain="models.example.com",
        addresses=Addresses.HOSTS,
        gateways=(
            NamespaceGateway(
                GatewayReference("vision", "gateways"),
                "https://vision.example.com",
                ("vision", "ml-*"),
                ("speech",),
                True,
            ),
        ),
        leaving=("vision",),
        waker=WakerReference("fairlead-waker", "fairlead", 9003),
        monitoring_namespaces=("monitoring",),
        reach=Reach.API_SERVER,
        api_server_networks=("10.0.0.0/24", "fd00::/64"),
        defaults=Resources(0.25, 2 * 2**30),
        shared_memory_bytes=128 * 2**20,
        custom_metrics=True,
        repartition=Repartition("nvidia", 30),
        telemetry=Telemetry("http://collector.monitoring:4318", LogFormat.JSON),
        name="production",
        control_plane_url="https://fairlead.example.com",
        control_plane_ca_config_map="fairlead-ca",
        drain_s=60,
        pre_stop_s=10,
        longest_start_s=1200,
        jobs_namespace="models",
        jobs_on=("nvidia.com/gpu",),
        job_node_selector={"gpu": "a30"},
        job_tolerations=({"key": "gpu"},),
        allowed_managers=("kube-controller-manager",),
        network=ClosedNetwork(
            egress=(Destination(namespace="fairlead", pods={"app.kubernetes.io/component": "web"}, ports=(8080,)),),
            granted=(Destination(is_internet=True, ports=(443,)),),
            dns=(Destination(ip_network("169.254.20.10/32")),),
        ),
    )


@pytest.mark.parametrize(
    ("telemetry", "field", "sentence"),
    [
        ({"otlp": "collector:4318"}, "telemetry.otlp", "expected the base address of a collector"),
        ({"otlp": "http://me:pass@collector"}, "telemetry.otlp", "without user and query"),
        ({"logs": "xml"}, "telemetry.logs", "expected text or json"),
        ({"traces": True}, "telemetry.traces", "is not a field"),
    ],
)
def test_telemetry_is_checked(telemetry: dict[str, Any], field: str, sentence: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_cluster({**LEAST, "telemetry": telemetry})
    assert (caught.value.field, sentence in caught.value.message) == (field, True), caught.value.message


DNS = {"dns": [{"namespace": "dns", "ports": [5353]}]}


@pytest.mark.parametrize(
    ("network", "field", "sentence"),
    [
        ({"ingress": []}, "network.ingress", "is not a field"),
        ({"egress": "internet"}, "network.egress", "expected a list"),
        ({"egress": [{}]}, "network.egress[0]", "has to say one of to"),
        ({"egress": [{"to": "internet", "namespace": "a"}]}, "network.egress[0]", "has to say one of to"),
        ({"egress": [{"to": "internet", "pods": {"a": "b"}}]}, "network.egress[0]", "has to say one of to"),
        ({"egress": [{"to": "10.0.0.1/8"}]}, "network.egress[0].to", "has host bits set; expected internet or"),
        ({"egress": [{"to": "s3.example.com"}]}, "network.egress[0].to", "expected internet or a network such as"),
        ({"egress": [{"namespace": "A"}]}, "network.egress[0].namespace", "expected a DNS label"),
        ({"egress": [{"namespace": "a", "pods": ["web"]}]}, "network.egress[0].pods", "is no object of texts"),
        ({"egress": [{"to": "internet", "ports": [0]}]}, "network.egress[0].ports", "ports from 1 to 65535"),
        ({"egress": [{"to": "internet", "ports": [True]}]}, "network.egress[0].ports", "ports from 1 to 65535"),
        ({"egress": [{"to": "internet", "port": 443}]}, "network.egress[0].port", "did you mean ports"),
        ({"granted": [{"to": "169.254.169.254/32"}]}, "network.granted[0].to", "closed to models, such as a cloud's"),
        ({"egress": [{"to": "fd00:ec2::254/128"}]}, "network.egress[0].to", "closed to models"),
        ({"egress": [{"to": "64:ff9b::a9fe:a9fe/128"}]}, "network.egress[0].to", "closed to models"),
        ({"egress": [{"to": "::ffff:0:0/96"}]}, "network.egress[0].to", "closed to models"),
        ({"egress": [{"to": "169.254.20.10/32"}]}, "network.egress[0].to", "belongs to network.dns"),
        ({"dns": [{"to": "169.254.169.254/32"}]}, "network.dns[0].to", "closed to models"),
        ({"dns": [{"to": "internet"}]}, "network.dns[0].to", "name the servers of DNS"),
        ({}, "network.egress", "pods fetch from https://fairlead.example.com"),
    ],
)
def test_a_network_that_cannot_be_closed_is_refused_by_its_field(
    network: dict[str, Any], field: str, sentence: str
) -> None:
    with pytest.raises(InvalidInput, match=re.escape(sentence)) as refused:
        parse_cluster({**LEAST, "controlPlaneUrl": "https://fairlead.example.com", "network": network})
    assert refused.value.field == field


def test_a_network_is_closed_where_the_file_says_so_and_the_rest_is_usual() -> None:
    assert parse_cluster(LEAST).options.network is None
    assert parse_cluster({**LEAST, "network": {}}).options.network == ClosedNetwork(), "models come from the claim"
    found = parse_cluster({**LEAST, "network": {**DNS, "granted": []}}).options.network
    assert found == ClosedNetwork(granted=(), dns=(Destination(namespace="dns", ports=(5353,)),))


@pytest.mark.parametrize(
    ("keda", "field", "sentence"),
    [
        ({}, "keda.prometheus", "keda.prometheus is missing"),
        ({"prometheus": "prometheus:9090"}, "keda.prometheus", "expected where KEDA asks Prometheus"),
        ({"prometheus": "http://p:9090", "pollingInterval": "100ms"}, "keda.pollingInterval", "whole seconds"),
        ({"prometheus": "http://p:9090", "cooldown": "1s"}, "keda.cooldown", "keda.cooldown is not a field"),
    ],
)
def test_what_is_said_of_keda_is_refused_by_its_field(keda: dict[str, str], field: str, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence) as refused:
        parse_cluster({**LEAST, "keda": keda})
    assert refused.value.field == field


def test_keda_follows_the_load_in_the_place_of_the_custom_metrics_api() -> None:
    address = "http://prometheus.monitoring:9090"
    options = parse_cluster({**LEAST, "keda": {"prometheus": f"{address}/"}}).options
    assert (options.keda, options.custom_metrics) == (Keda(address, 15), False)
    often = parse_cluster({**LEAST, "keda": {"prometheus": address, "pollingInterval": "5s"}}).options
    assert often.keda == Keda(address, 5)


def test_a_replica_gets_the_usual_where_only_one_default_is_said() -> None:
    document = changed("defaults", {"resources": {"requests": {"cpu": 2}}})
    assert parse_cluster(document).options.defaults == Resources(2.0, 1024 * 2**20)


@pytest.mark.parametrize(
    ("path", "value", "field", "sentence"),
    [
        ("kind", "nomad", "kind", "kind is 'nomad'; expected kubernetes"),
        ("name", "Production", "name", "expected a DNS label"),
        ("conection", {}, "conection", "conection is not a field that Fairlead can honour here; it knows "),
        ("gateway.listener", "x", "gateway.listener", "gateway.listener is not a field"),
        ("gateway.url", "models.example.com", "gateway.url", "expected where clients reach the gateway"),
        ("gateway.namespace", None, "gateway.namespace", "gateway.namespace is missing"),
        ("runtimeImage", 7, "runtimeImage", "runtimeImage is 7; expected a text"),
        ("artifacts.claims", "x", "artifacts.claims", "artifacts.claims is not a field"),
        (
            "keda",
            {"prometheus": "http://prometheus:9090"},
            "keda",
            "one alone may follow the load, so leave one of them out",
        ),
        ("reach", "tunnel", "reach", "direct or apiServer"),
        (
            "apiServerNetworks",
            ["10.0.0.1/24"],
            "apiServerNetworks",
            "has host bits set; expected a range such as 10.0.0.0/24",
        ),
        ("reach", "direct", "apiServerNetworks", "counts only where reach is apiServer; leave it out"),
        ("monitoringNamespaces", "monitoring", "monitoringNamespaces", "is no list of texts"),
        ("defaults.resources.limits", {}, "defaults.resources.limits", "is not a field"),
        ("sharedMemory", "much", "sharedMemory", "expected a quantity such as 512Mi"),
        ("controlPlaneUrl", "fairlead", "controlPlaneUrl", "expected where pods reach the control plane"),
        ("customMetrics", "yes", "customMetrics", "expected true or false"),
        ("drain", "1500ms", "drain", "is no number of whole seconds"),
        ("prometheus.url", "prometheus:9090", "prometheus.url", "expected where Prometheus answers, such as https://"),
        ("prometheus.url", "http://p:9090", "prometheus.token", "would be sent over http, where others can read it"),
        ("prometheus.token", "two words", "prometheus.token", "give the token on one line, without spaces"),
        ("prometheus.tenant", "a b", "prometheus.tenant", "expected a tenant: 1 to 150 letters"),
        ("prometheus.tenants", ["a"], "prometheus.tenants", "is not a field"),
        ("preStop", 5, "preStop", "expected a duration"),
        ("connection", {}, "connection", "one of inCluster: true, kubeconfig and kubeconfigPath"),
        ("connection", {"inCluster": True, "kubeconfigPath": "/x"}, "connection", "has to say one of"),
        ("connection", {"inCluster": True, "context": "eu"}, "connection.context", "no kubeconfig to choose it from"),
        ("connection", {"kubeconfig": "stored", "context": "eu"}, "connection.context", "give the kubeconfig again"),
        ("connection", {"server": "https://x"}, "connection.server", "connection.server is not a field"),
    ],
)
def test_a_wrong_field_is_refused_by_its_name(path: str, value: object, field: str, sentence: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        parse_cluster(changed(path, value))
    assert refusal.value.field == field
    assert sentence in refusal.value.message


def test_a_cluster_may_have_a_prometheus_of_its_own() -> None:
    assert parse_cluster(LEAST).prometheus is None
    of_its_own = PrometheusServer("https://prometheus.example.com/eu", "eu", "PEM", "secret-of-prometheus")
    assert parse_cluster(MOST).prometheus == of_its_own
    assert "secret-of-prometheus" not in repr(parse_cluster(MOST))
    near = parse_cluster({**LEAST, "prometheus": {"url": "http://127.0.0.1:9090/", "token": "t"}})
    assert near.prometheus == PrometheusServer("http://127.0.0.1:9090", token="t")


def test_a_shown_file_has_no_secrets() -> None:
    shown = without_secrets({**MOST, "connection": {"kubeconfig": {"users": []}, "context": "eu"}})
    assert shown["connection"] == {"kubeconfig": "stored"}
    assert shown["prometheus"] == {**MOST["prometheus"], "token": "stored"}
    assert without_secrets({**LEAST, "connection": [], "prometheus": 7}) == {**LEAST, "connection": [], "prometheus": 7}


def test_a_file_must_agree_with_its_address() -> None:
    with pytest.raises(InvalidInput, match="put as 'staging'; give both the same name"):
        parse_cluster(LEAST, name="staging")
    unnamed = {name: value for name, value in LEAST.items() if name != "name"}
    assert parse_cluster(unnamed, name="staging").name == "staging"


def of(connection: dict[str, Any]) -> Connection:
    return parse_cluster(changed("connection", connection)).connection


def test_ways_to_the_api_server() -> None:
    assert of({"kubeconfig": "stored"}) == Connection(Way.STORED)
    expected = Connection(Way.PATH, path="/etc/fairlead/eu.yaml", context="eu")
    assert of({"kubeconfigPath": "/etc/fairlead/eu.yaml", "context": "eu"}) == expected


@pytest.mark.parametrize("kubeconfig", [KUBECONFIG, yaml.safe_dump(KUBECONFIG)], ids=["object", "text"])
def test_only_the_contexts_cluster_and_user_are_taken_from_a_kubeconfig(kubeconfig: object) -> None:
    current = of({"kubeconfig": kubeconfig}).credentials
    assert current == Credentials("https://eu.example.com:6443", "CA", token="secret-of-robot")
    chosen = of({"kubeconfig": kubeconfig, "context": "us"}).credentials
    assert chosen == Credentials("https://us.example.com", "", "CERT", "KEY", server_name="kubernetes")


def test_what_is_secret_is_in_no_representation() -> None:
    for context in ("eu", "us"):
        shown = repr(parse_cluster(changed("connection", {"kubeconfig": KUBECONFIG, "context": context})))
        assert "secret-of-robot" not in shown
        assert "KEY" not in shown


def with_user(**user: object) -> dict[str, Any]:
    return {**KUBECONFIG, "users": [{"name": "robot", "user": user}]}


def with_cluster(**cluster: object) -> dict[str, Any]:
    return {**KUBECONFIG, "clusters": [{"name": "eu", "cluster": {"server": "https://x", **cluster}}]}


@pytest.mark.parametrize(
    ("kubeconfig", "sentence"),
    [
        pytest.param(
            with_user(exec={"command": "aws"}), "user.exec.command is 'aws'; expected the absolute path", id="exec"
        ),
        pytest.param(
            with_user(**{"auth-provider": {"name": "oidc"}}), "user.auth-provider is not honoured", id="auth-provider"
        ),
        pytest.param(
            with_user(**{"client-certificate": "/c", "client-key": "/k"}),
            "user.client-certificate is not honoured: it is a path on another machine; embed the file as "
            "client-certificate-data",
            id="client-certificate",
        ),
        pytest.param(with_user(token="t", tokenFile="/t"), "user.tokenFile is not honoured", id="tokenFile"),
        pytest.param(with_user(username="u", password="p"), "takes no passwords any more", id="password"),
        pytest.param(with_user(token="t", **{"as": "boss"}), "user.as is not a field", id="as"),
        pytest.param(with_user(), "user.token is missing, and there is no client certificate", id="nobody"),
        pytest.param(
            with_user(**{"client-certificate-data": pem("C")}), "user.client-key-data is missing", id="no key"
        ),
        pytest.param(with_user(**{"client-key-data": "%%%"}), "client-key-data is no base64 of a PEM", id="no base64"),
        pytest.param(
            with_cluster(**{"certificate-authority": "/ca"}),
            "cluster.certificate-authority is not honoured: it is a path",
            id="certificate-authority",
        ),
        pytest.param(
            with_cluster(**{"insecure-skip-tls-verify": True}), "only to a server that proves who it is", id="insecure"
        ),
        pytest.param(with_cluster(server="http://x"), "expected https://HOST:PORT", id="http"),
        pytest.param(
            {**KUBECONFIG, "current-context": "asia"}, "has no context 'asia'; there are: aws, eu, us", id="n"
        ),
        pytest.param({**KUBECONFIG, "current-context": ""}, "has no current-context", id="no context"),
        pytest.param({**KUBECONFIG, "users": []}, "has no user 'robot'; there are: none", id="no user"),
        pytest.param("a: [", "connection.kubeconfig is no YAML in line 1", id="no YAML"),
        pytest.param(7, "connection.kubeconfig is a whole number; expected an object", id="a number"),
    ],
)
def test_what_a_kubeconfig_says_that_is_not_in_itself_is_refused_by_name(kubeconfig: object, sentence: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        of({"kubeconfig": kubeconfig})
    assert sentence in refusal.value.message
    assert (refusal.value.field or "").startswith("connection.kubeconfig")


def test_a_user_of_another_context_may_be_whatever_it_is() -> None:
    assert of({"kubeconfig": KUBECONFIG}).credentials is not None
    with pytest.raises(InvalidInput, match=r"user\.exec\.command is 'aws'; expected the absolute path"):
        of({"kubeconfig": KUBECONFIG, "context": "aws"})


@pytest.mark.parametrize(
    ("artifacts", "field"),
    [
        pytest.param({}, "artifacts.claim", id="a claim that is not named"),
        pytest.param({"from": "elsewhere"}, "artifacts.from", id="an unknown source"),
        pytest.param({"from": "registry", "originSecret": "x"}, "artifacts.originSecret", id="a secret for nobody"),
        pytest.param(
            {**LEAST["artifacts"], "cache": {"claim": "x", "size": "1Gi"}}, "artifacts.cache", id="a cache of a claim"
        ),
        pytest.param({"from": "registry", "cache": {"size": "1Gi"}}, "artifacts.cache", id="a cache nowhere"),
        pytest.param(
            {"from": "registry", "cache": {"claim": "x", "nodeFolder": "/y", "size": "1Gi"}},
            "artifacts.cache",
            id="a cache in two places",
        ),
        pytest.param(
            {"from": "registry", "cache": {"nodeFolder": "y", "size": "1Gi"}}, "artifacts.cache", id="no whole path"
        ),
        pytest.param({"from": "registry", "cache": {"claim": "x"}}, "artifacts.cache.size", id="a cache of no size"),
        pytest.param({"from": "bucket"}, "artifacts.bucket", id="no bucket"),
        pytest.param({"from": "bucket", "bucket": "models"}, "artifacts.bucket", id="a bucket without a scheme"),
        pytest.param({"from": "bucket", "bucket": "s3://m/../x"}, "artifacts.bucket", id="a bucket with a way out"),
        pytest.param(
            {"from": "bucket", "bucket": "s3://http://host/m"}, "artifacts.bucket", id="a bucket with its server"
        ),
        pytest.param({"from": "registry", "bucket": "s3://models"}, "artifacts.bucket", id="a bucket of no use"),
        pytest.param(
            {"from": "origin", "bucketSecret": "x"}, "artifacts.bucketSecret", id="a Secret for another source"
        ),
        pytest.param(
            {"from": "bucket", "bucket": "s3://models", "originSecret": "x"},
            "artifacts.originSecret",
            id="the Secret of another source",
        ),
        pytest.param(
            {"from": "origin", "serviceAccountAnnotations": {"a": 1}},
            "artifacts.serviceAccountAnnotations",
            id="an annotation that is no text",
        ),
    ],
)
def test_where_models_come_from_is_checked(artifacts: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_cluster(changed("artifacts", artifacts))
    assert refused.value.field == field


def test_pods_may_take_copies_from_a_bucket() -> None:
    artifacts = {"from": "bucket", "bucket": "s3://models/fairlead/", "bucketSecret": "reader"}
    options = parse_cluster(changed("artifacts", artifacts)).options
    assert options.models_from is ModelSource.BUCKET
    assert (options.bucket, options.origin_secret) == ("s3://models/fairlead", "reader")


def test_pods_that_fetch_from_the_registry_have_to_know_where_it_is() -> None:
    with pytest.raises(InvalidInput, match="give controlPlaneUrl"):
        parse_cluster({**LEAST, "artifacts": {"from": "registry"}})


def test_all_faults_of_a_file_are_named_at_once() -> None:
    document = copy.deepcopy(LEAST) | {"name": "Production", "reach": "tunnel", "drain": 5, "runtimeImge": "x"}
    document |= {"connection": {"kubeconfg": {}}, "jobs": {"measureOn": ["gpu"]}, "defaults": {"resources": 3}}
    document["gateway"] = document["gateway"] | {"url": "models", "namespace": "Models"}
    with pytest.raises(InvalidInput) as refusal:
        parse_cluster(document)
    assert refusal.value.message.startswith("the cluster file has 9 faults; the first: name is 'Production'")
    assert sorted(line.split(" ")[0] for line in refusal.value.details) == [
        "connection.kubeconfg",
        "defaults.resources",
        "drain",
        "gateway.namespace",
        "gateway.url",
        "jobs.measureOn",
        "name",
        "reach",
        "runtimeImge",
    ]
    assert any(line.endswith("did you mean kubeconfig?") for line in refusal.value.details)


def test_all_faults_of_a_kubeconfig_are_named_and_none_of_its_secrets() -> None:
    config = copy.deepcopy(KUBECONFIG)
    config["clusters"][0]["cluster"] |= {"server": "http://eu", "insecure-skip-tls-verify": True}
    config["users"][0]["user"] |= {"password": "hunter2", "client-key-data": "no base64 hunter2"}
    with pytest.raises(InvalidInput) as refusal:
        parse_cluster(changed("connection", {"kubeconfig": config}, LEAST))
    at = "connection.kubeconfig."
    assert [line.removeprefix(at).split(" ")[0] for line in refusal.value.details] == [
        "clusters[0].cluster.insecure-skip-tls-verify",
        "users[0].user.password",
        "clusters[0].cluster.server",
        "users[0].user.client-key-data",
    ]
    assert "hunter2" not in f"{refusal.value.message} {refusal.value.details}"
