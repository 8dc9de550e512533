"""The chart's values: each is told of, none is taken that is not."""

from collections.abc import Iterator
from typing import Any

import helm_python as helm
import pytest
import yaml

from tests.charts.chart import CHART, VARIATIONS, Json, rendered, values
from tests.charts.readme import commented, readme

MOST_LINES = 350


def test_the_readme_is_what_the_values_say() -> None:
    assert (CHART / "README.md").read_text() == readme(), "write it anew: python -m tests.charts.readme"


def test_every_value_has_a_comment_and_the_file_stays_readable() -> None:
    text = (CHART / "values.yaml").read_text()
    names = [name for name, _ in commented()]
    told = [
        leaf
        for leaf in _leaves(yaml.safe_load(text))
        if any(leaf == name or leaf.startswith(f"{name}.") for name in names)
    ]
    assert told == list(_leaves(yaml.safe_load(text)))
    assert len(text.splitlines()) <= MOST_LINES


def test_every_object_of_values_is_closed_by_the_schema() -> None:
    with helm.Chart.load(CHART) as chart:
        schema = chart.schema
    assert schema is not None
    open_ones = [name for name, part in _objects("", schema, schema) if "additionalProperties" not in part]
    assert open_ones == ["cluster.file", "global"], "the cluster file is the control plane's to check, global is Helm's"


def test_the_schema_knows_every_value() -> None:
    with helm.Chart.load(CHART) as chart:
        assert set(_properties(chart.schema or {})) - {"global"} == set(chart.values)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        pytest.param({"web": {"replica": 2}}, "additional properties 'replica' not allowed", id="a misspelt value"),
        pytest.param({"web": {"replicas": "2"}}, "/web/replicas", id="a text where a number belongs"),
        pytest.param({"url": "https://fairlead.example.com/ui"}, "at '/url'", id="an address with a path"),
        pytest.param({"cluster": {"name": "local"}}, "/cluster/name", id="the name of the machine's own cluster"),
        pytest.param({"settings": {"FAIRLEAD_URL": "x"}}, "'FAIRLEAD_URL'", id="a setting that the chart makes"),
        pytest.param({"settings": {"FAIRLEAD_SECRET_KEY": "x"}}, "'FAIRLEAD_SECRET_KEY'", id="a secret in the values"),
        pytest.param({"persistence": {"state": {"size": "plenty"}}}, "/persistence/state/size", id="no amount"),
        pytest.param({"image": {"digest": "sha256:12"}}, "/image/digest", id="no digest"),
        pytest.param({"redis": {"image": {"digest": "latest"}}}, "/redis/image/digest", id="a tag as a digest"),
        pytest.param({"redis": {"password": "s3cret"}}, "/redis/password", id="a password in the values"),
        pytest.param({"defaults": "safe"}, "/defaults", id="other defaults"),
        pytest.param({"cluster": {"modelCache": "off"}}, "/cluster/modelCache", id="no amount of a cache"),
        pytest.param({"allowedRegistries": ["fairlead"]}, "/allowedRegistries/0", id="no registry"),
        pytest.param({"allowedRegistries": ["a.example/x:1"]}, "/allowedRegistries/0", id="an image"),
        pytest.param(
            {"settings": {"FAIRLEAD_ALLOWED_REGISTRIES": "a.example"}},
            "'FAIRLEAD_ALLOWED_REGISTRIES'",
            id="registries as a setting",
        ),
        pytest.param(
            {"postgresql": {"enabled": False}},
            "existingSecret is empty, but postgresql.enabled or redis.enabled is false; name a Secret",
            id="no way to the database",
        ),
        pytest.param(
            {"settings": {"FAIRLEAD_SECRET_KEY_FALLBACKS": "x"}},
            "'FAIRLEAD_SECRET_KEY_FALLBACKS'",
            id="an earlier secret key",
        ),
        pytest.param({"prometheus": {"url": "http://a?b=c"}}, "/prometheus/url", id="an address with a query"),
        pytest.param(
            {"prometheus": {"existingSecret": "token"}}, "but prometheus.url is empty", id="a token that nobody is told"
        ),
        pytest.param({"oidc": {"issuer": "https://sso.example"}}, "oidc.clientId is empty", id="no client's name"),
        pytest.param(
            {"oidc": {"issuer": "https://sso.example", "clientId": "f"}}, "oidc.existingSecret is empty", id="no secret"
        ),
        pytest.param({"oidc": {"clientId": "f"}}, "oidc.issuer is empty", id="a client of nobody"),
        pytest.param({"audit": {"syslog": "siem:514"}}, "/audit/syslog", id="a syslog server without a transport"),
        pytest.param({"audit": {"webhook": "https://a"}}, "audit.existingSecret is empty", id="an unsigned webhook"),
        pytest.param({"audit": {"existingSecret": "s"}}, "audit.webhook are empty", id="a secret of no sink"),
        pytest.param({"networkPolicy": {"models": "shut"}}, "/networkPolicy/models", id="no state of a network"),
        pytest.param({"networkPolicy": {"egress": [{"cidr": "::/0"}]}}, "'cidr'", id="no destination"),
        pytest.param(
            {"networkPolicy": {"models": "open"}, "cluster": {"file": {"network": {}}}},
            "cluster.file.network is set, but the network of models is open",
            id="a closed network that is open",
        ),
        pytest.param({"secretKeys": {"database": "uri"}}, "'database'", id="a key that no Secret has"),
        pytest.param({"secretKeys": {"database-url": "a/b"}}, "/secretKeys/database-url", id="no name of a key"),
        pytest.param(
            {"secretKeys": {"database-url": "uri"}},
            "secretKeys names keys of existingSecret, which is empty; name the Secret",
            id="a key of the chart's own Secret",
        ),
        pytest.param(
            {"extraEnv": [{"name": "FAIRLEAD_URL", "value": "x"}]}, "/extraEnv/0/name", id="a variable of the chart"
        ),
        pytest.param(
            {"extraEnv": [{"name": "DJANGO_SETTINGS_MODULE", "value": "x"}]},
            "extraEnv has DJANGO_SETTINGS_MODULE, which the chart or settings set already",
            id="a variable that is set already",
        ),
        pytest.param(
            {
                "settings": {"FAIRLEAD_LOG_LEVEL": "INFO"},
                "extraEnv": [{"name": "FAIRLEAD_LOG_LEVEL", "value": "DEBUG"}],
            },
            "extraEnv has FAIRLEAD_LOG_LEVEL",
            id="a setting given twice",
        ),
        pytest.param({"extraEnv": [{"name": "A"}]}, "/extraEnv/0", id="a variable without a value"),
        pytest.param({"extraEnv": [{"name": "A", "value": 1}]}, "/extraEnv/0/value", id="a number as a variable"),
        pytest.param(
            {"extraEnv": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]},
            "extraEnv has A",
            id="a variable given twice",
        ),
        pytest.param({"envFrom": [{"secret": "more"}]}, "'secret'", id="no source of variables"),
        pytest.param(
            {"proxy": {"httpsProxy": "http://user:pass@proxy:3128"}}, "/proxy/httpsProxy", id="a password of a proxy"
        ),
        pytest.param({"proxy": {"noProxy": "a, b"}}, "/proxy/noProxy", id="a blank between hosts"),
        pytest.param(
            {"caBundle": {"configMap": "a", "secret": "b"}},
            "caBundle.configMap and caBundle.secret are both set",
            id="two bundles",
        ),
        pytest.param(
            {"kubeconfigSecret": "a", "settings": {"FAIRLEAD_KUBECONFIG_FOLDER": "/b"}},
            "kubeconfigSecret and settings.FAIRLEAD_KUBECONFIG_FOLDER are both set",
            id="two folders of kubeconfigs",
        ),
        pytest.param(
            {"serviceAccount": {"create": False}},
            "but serviceAccount.name is empty",
            id="a ServiceAccount without a name",
        ),
        pytest.param(
            {"rbac": {"useClusterRole": False}},
            "so the chart makes no namespaces; set cluster.namespaces",
            id="namespaces without rights on the cluster",
        ),
        pytest.param(
            {
                "rbac": {"useClusterRole": False},
                "cluster": {"namespaces": ["a"], "repartition": True, "file": {"jobs": {"namespace": "a"}}},
            },
            "cluster.repartition is true, but rbac.useClusterRole is false",
            id="cutting GPUs without rights on nodes",
        ),
        pytest.param(
            {
                "rbac": {"useClusterRole": False},
                "cluster": {"namespaces": ["a"], "customResources": True, "file": {"jobs": {"namespace": "a"}}},
            },
            "cluster.customResources is true, but rbac.useClusterRole is false",
            id="objects of all namespaces without rights on the cluster",
        ),
        pytest.param({"podSecurityContext": {"runAsUser": 0}}, "/podSecurityContext/runAsUser", id="pods of root"),
        pytest.param({"podSecurityContext": {"runAsNonRoot": False}}, "'runAsNonRoot'", id="pods that may be of root"),
        pytest.param({"containerSecurityContext": {"privileged": True}}, "'privileged'", id="privileged containers"),
        pytest.param({"podLabels": {"fairlead/service": "x"}}, "'fairlead/service'", id="a label that selects pods"),
        pytest.param({"commonLabels": {"a": "b c"}}, "/commonLabels/a", id="no value of a label"),
        pytest.param({"commonAnnotations": {"helm.sh/hook": "x"}}, "'helm.sh/hook'", id="an annotation of Helm"),
        pytest.param({"affinity": {"nodes": {}}}, "'nodes'", id="no affinity"),
        pytest.param(
            {"topologySpreadConstraints": [{"topologyKey": "zone"}]}, "/topologySpreadConstraints/0", id="half a spread"
        ),
        pytest.param({"web": {"service": {"type": "ExternalName"}}}, "/web/service/type", id="no type of the Service"),
        pytest.param(
            {"extraVolumes": [{"name": "tmp", "emptyDir": {}}]}, "/extraVolumes/0/name", id="a volume of the chart"
        ),
        pytest.param({"extraVolumes": [{"name": "a"}]}, "/extraVolumes/0", id="a volume of nothing"),
        pytest.param(
            {"extraVolumeMounts": [{"name": "a", "mountPath": "/etc/fairlead/secrets"}]},
            "/extraVolumeMounts/0/mountPath",
            id="a mount over one of the chart",
        ),
        pytest.param(
            {"extraContainers": [{"name": "web", "image": "a"}]}, "/extraContainers/0/name", id="a second web"
        ),
        pytest.param({"extraContainers": [{"name": "a"}]}, "/extraContainers/0", id="a sidecar without an image"),
        pytest.param(
            {
                "cluster": {
                    "gpuRuntimeImage": {"repository": "a/serving-runtime"},
                    "file": {"gpuRuntimeImage": "b/serving-runtime:1"},
                }
            },
            "cluster.gpuRuntimeImage and cluster.file.gpuRuntimeImage are both set",
            id="two images for GPUs",
        ),
        pytest.param(
            {"expose": {"kind": "httpRoute"}},
            "neither gatewayClassName nor gateway.name",
            id="a route that leads nowhere",
        ),
    ],
)
def test_a_wrong_value_is_refused_by_its_name(wrong: Json, said: str) -> None:
    with pytest.raises(helm.HelmError) as refused:
        rendered(wrong)
    assert said in str(refused.value)


@pytest.mark.parametrize("variation", VARIATIONS)
def test_helm_finds_nothing_wrong_with_the_chart(variation: str) -> None:
    report = helm.lint(CHART, values(variation), strict=True)
    assert report["errors"] == []
    assert [each for each in report["messages"] if each["severity"] > 1] == []


def _leaves(value: Any, name: str = "") -> Iterator[str]:
    if not isinstance(value, dict) or not value:
        yield name
        return
    for key, each in value.items():
        yield from _leaves(each, f"{name}.{key}" if name else key)


def _objects(name: str, part: Json, schema: Json) -> Iterator[tuple[str, Json]]:
    if "$ref" in part:
        part = schema["$defs"][part["$ref"].rpartition("/")[2]]
    if part.get("type") == "object":
        yield name, part
    for key, each in _properties(part).items():
        yield from _objects(f"{name}.{key}" if name else key, each, schema)


def _properties(part: Json) -> Json:
    found: Json = part.get("properties", {})
    return found
