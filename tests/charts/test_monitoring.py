"""Alerts, dashboards and the metrics adapter's rules ask for metrics that the product has, and the adapter names them
as services ask for them.
"""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from integrations.clusters.kubernetes.manifests.scaling import METRICS
from tests.charts.chart import CHART, ROOT, objects
from tests.servers.parts import MissingPartError, skip_or_fail

FILES = CHART / "files"
DASHBOARDS = sorted((FILES / "dashboards").glob("*.json"))
_OURS = re.compile(r"\b(?:fairlead|nv)_[a-z0-9_]+\b")
_OF_A_HISTOGRAM = re.compile(r"_(bucket|count|sum)$")


def documented() -> set[str]:
    """Return every name that the reference gives to a metric, with those of a histogram's parts."""
    rows = "\n".join((ROOT / "docs" / "reference" / page).read_text() for page in ("metrics.md", "serving-runtime.md"))
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
            yield rule["alert"], rule["expr"]
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


def adapter_rules() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load((FILES / "adapter-rules.yaml").read_text())["rules"]
    return found


@pytest.mark.parametrize(("place", "expression"), [pytest.param(*each, id=each[0]) for each in expressions()])
def test_an_expression_asks_for_metrics_that_there_are(place: str, expression: str) -> None:
    asked = set(_OURS.findall(expression))
    assert asked, f"{place} asks for no metric of ours"
    assert asked <= documented()


def test_the_adapter_offers_what_services_scale_on() -> None:
    assert {rule["name"]["as"] for rule in adapter_rules()} == set(METRICS.values())


def test_the_rules_reach_the_cluster_as_they_are() -> None:
    found = {each["kind"]: each for each in objects({"monitoring": {"alerts": True, "adapterRules": True}})}
    assert found["PrometheusRule"]["spec"] == yaml.safe_load((FILES / "alerts.yaml").read_text())
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


def test_prometheus_understands_every_expression(tmp_path: Path) -> None:
    """Each as a rule of its own, with Grafana's variables and the adapter's slots filled in."""
    promtool = shutil.which("promtool")
    if promtool is None:
        skip_or_fail(MissingPartError("promtool is not installed; `make deps` installs the Debian package prometheus"))
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
        [str(promtool), "check", "rules", str(tmp_path / "rules.yaml"), str(tmp_path / "alerts.yaml")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
