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
