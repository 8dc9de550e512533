"""Alerts, dashboards and the metrics adapter's rules ask for metrics that the product has, and the adapter names them
as services ask for them.
"""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from integrations.clusters.kubernetes.manifests.scaling.autoscaler import METRICS
from tests.charts.chart import CHART, NAMESPACE, RELEASE, ROOT, objects
from tests.charts.promtool import check_values, program

FILES = CHART / "files"
DASHBOARDS = sorted((FILES / "dashboards").glob("*.json"))
_OURS = re.compile(r"\b(?:fairlead|nv)_[a-z0-9_]+\b")
_RECORDED = re.compile(r"\bfairlead:[a-z0-9_:]+")
_OF_A_HISTOGRAM = re.compile(r"_(bucket|count|sum)$")
_OF_OTHERS = re.compile(r"\bup\{|\bkubelet_volume_stats_(?:available|capacity)_bytes\{")


def documented() -> set[str]:
    """Return every name that the reference gives to a metric, with those of a histogram's parts."""
    pages = ("metrics.md", "serving-runtime.md", "model-pools.md")
    rows = "\n".join((ROOT / "docs" / "reference" / page).read_text() for page in pages)
    names: set[str] = set()
    for name, kind in re.findall(r"^\| `(\w+)` \| (\w+) \|", rows, re.MULTILINE):
        names.add(name)
        if kind == "histogram":
            names |= {f"{name}_{part}" for part in ("bucket", "count", "sum")}
    return names | set(re.findall(r"written `(\w+)` on the page", rows))


def expressions() -> Iterator[tuple[str, str]]:
    """Yield where an expression is, and it."""
    for group in yaml.safe_load((FILES / "alerts.yaml").read_text())["groups"]:
        for rule in group["rules"]:
            yield rule.get("alert") or f"{rule['record']} {rule.get('labels', '')}", rule["expr"]
    for path in DASHBOARDS:
        content = json.loads(path.read_text())
        for panel in content["panels"]:
            for target in panel["targets"]:
                yield f"{path.stem}: {panel['title']}", target["expr"]
        for variable in content["templating"]["list"]:
            if variable["type"] == "query":
                yield f"{path.stem}: ${variable['name']}", variable["query"]
    for rule in adapter_rules():
        yield rule["name"]["as"], f"{rule['seriesQuery']} {rule['metricsQuery']}"


def records() -> set[str]:
    """Return the names of the series that rules record."""
    groups = yaml.safe_load((FILES / "alerts.yaml").read_text())["groups"]
    return {rule["record"] for group in groups for rule in group["rules"] if "record" in rule}


def test_the_reference_names_the_series_that_rules_record() -> None:
    page = (ROOT / "docs" / "reference" / "objectives.md").read_text()
    assert set(re.findall(r"^\| `(fairlead:[a-z0-9_:]+)`", page, re.MULTILINE)) == records()


def adapter_rules() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load((FILES / "adapter-rules.yaml").read_text())["rules"]
    return found


@pytest.mark.parametrize(("place", "expression"), [pytest.param(*each, id=each[0]) for each in expressions()])
def test_an_expression_asks_for_metrics_that_there_are(place: str, expression: str) -> None:
    asked = set(_OURS.findall(expression))
    recorded = set(_RECORDED.findall(expression))
    assert recorded <= records()
    assert asked or recorded or _OF_OTHERS.search(expression), f"{place} asks for no metric that is known"
    assert asked <= documented()


def test_the_adapter_offers_what_services_scale_on() -> None:
    assert {rule["name"]["as"] for rule in adapter_rules()} == set(METRICS.values())


def test_the_rules_reach_the_cluster_as_they_are() -> None:
    found = {each["kind"]: each for each in objects({"monitoring": {"alerts": True, "adapterRules": True}})}
    text = (FILES / "alerts.yaml").read_text()
    for slot, value in (
        ("RELEASE_NAMESPACE", NAMESPACE),
        ("RELEASE_NAME", RELEASE),
        ("RUNBOOK", "docs/reference/alerts.md"),
    ):
        text = text.replace(slot, value)
    assert found["PrometheusRule"]["spec"] == yaml.safe_load(text)
    maps = [each for each in objects({"monitoring": {"adapterRules": True}}) if each["kind"] == "ConfigMap"]
    (adapter,) = (each for each in maps if each["metadata"]["name"].endswith("-adapter-rules"))
    assert yaml.safe_load(adapter["data"]["config.yaml"])["rules"] == adapter_rules()


def test_the_dashboards_reach_grafana_as_they_are() -> None:
    found = [
        each
        for each in objects({"monitoring": {"dashboards": True}})
        if each["metadata"]["labels"].get("grafana_dashboard") == "1"
    ]
    shown = {name: json.loads(text) for each in found for name, text in each["data"].items()}
    assert shown == {f"fairlead-{path.name}": json.loads(path.read_text()) for path in DASHBOARDS}
    assert len({content["uid"] for content in shown.values()}) == len(DASHBOARDS) == 3


def panels() -> Iterator[tuple[str, str, str]]:
    """Yield where a line of a dashboard is, its expression and its legend."""
    for path in DASHBOARDS:
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel["targets"]:
                yield f"{path.stem}: {panel['title']}", target["expr"], target["legendFormat"]


@pytest.mark.parametrize(("place", "expression", "legend"), [pytest.param(*each, id=each[0]) for each in panels()])
def test_a_dashboard_keeps_namespaces_apart(place: str, expression: str, legend: str) -> None:
    """Services of one name in two namespaces are two, and so are two installations; a pod's name is unique enough."""
    groups = re.findall(r"(?:by|on) \(([\w, ]+)\)", expression)
    assert [group for group in groups if "namespace" not in group.split(", ") and group != "phase"] == []
    if "service" in str(groups) and legend != "{{pod}}":
        assert legend.startswith("{{namespace}}/{{service}} ")
    assert ("sum" in expression) <= bool(groups)


@pytest.mark.parametrize("phases", ["fairlead_rollouts", "fairlead_services"])
def test_what_each_web_pod_shows_of_the_whole_is_not_added_up(tmp_path: Path, phases: str) -> None:
    (expression,) = (each for _, each, _ in panels() if phases in each)
    series = {f'{phases}{{namespace="platform",pod="web-{pod}",phase="Ready"}}': "4x20" for pod in "abc"}
    check_values(tmp_path, expression=expression, series=series, expected={'{phase="Ready"}': 4})


def test_the_share_of_a_revision_is_that_of_its_own_namespace(tmp_path: Path) -> None:
    (expression,) = (each for place, each, _ in panels() if place == "rollouts: Share of requests by revision")
    expression = re.sub(r'\w+=~"\$\w+",?', "", expression)
    series = {
        f'nv_inference_request_success{{namespace="{where}",service="digits",revision="{revision}"}}': f"0+{rate}x20"
        for where, revision, rate in (("text", "one", 30), ("text", "two", 10), ("vision", "one", 100))
    }
    expected = {
        '{namespace="text", revision="one", service="digits"}': 0.75,
        '{namespace="text", revision="two", service="digits"}': 0.25,
        '{namespace="vision", revision="one", service="digits"}': 1,
    }
    check_values(tmp_path, expression=expression, series=series, expected=expected)


def test_prometheus_understands_every_expression(tmp_path: Path) -> None:
    """Each as a rule of its own, with Grafana's variables and the adapter's slots filled in."""
    filled = [
        re.sub(r"\$\w+", ".*", expression.replace("<<.LabelMatchers>>", 'pod=~".+"').replace("<<.GroupBy>>", "pod"))
        for place, expression in expressions()
        if ": $" not in place and not place.startswith(tuple(METRICS.values()))
    ]
    filled += [
        rule["metricsQuery"].replace("<<.LabelMatchers>>", 'pod=~".+"').replace("<<.GroupBy>>", "pod")
        for rule in adapter_rules()
    ]
    rules = [{"record": f"checked_{index}", "expr": expression} for index, expression in enumerate(filled)]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": [{"name": "checked", "rules": rules}]}))
    (tmp_path / "alerts.yaml").write_text((FILES / "alerts.yaml").read_text())
    done = subprocess.run(
        [program(), "check", "rules", str(tmp_path / "rules.yaml"), str(tmp_path / "alerts.yaml")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
