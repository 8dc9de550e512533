"""The chart of further clusters: the same rights as the control plane's chart gives at home, and nothing else."""

import json
from pathlib import Path
from typing import Any

import helm_python as helm
import pytest
import yaml

from fairlead_cli import join
from fairlead_cli.join.manifests import Account, manifests
from tests.charts.chart import CHART, MEMBER, NAMESPACE, RELEASE, Json, objects
from tests.charts.readme import commented, readme

ALL: Json = yaml.safe_load((MEMBER / "ci" / "all-values.yaml").read_text())
_PREFIX = f"{NAMESPACE}-{RELEASE}-"
_RBAC = ("ClusterRole", "ClusterRoleBinding", "RoleBinding")


def member(given: Json) -> list[Json]:
    return objects(given, chart_folder=MEMBER)


def rights(found: list[Json], prefix: str = _PREFIX) -> set[tuple[str, str, str]]:
    """Return where each role is bound, with its rules; the namespace is empty for the whole cluster."""
    rules = {each["metadata"]["name"]: each["rules"] for each in found if each["kind"] == "ClusterRole"}
    return {
        (
            each["metadata"].get("namespace", ""),
            each["roleRef"]["name"].removeprefix(prefix),
            json.dumps(rules[each["roleRef"]["name"]], sort_keys=True),
        )
        for each in found
        if each["kind"] in ("RoleBinding", "ClusterRoleBinding")
    }


@pytest.mark.parametrize(
    ("given", "at_home"),
    [
        pytest.param({"namespaces": ["vision"], "jobsNamespace": "checks"}, {}, id="the least"),
        pytest.param({"readNodes": False}, {"readNodes": False}, id="without nodes"),
        pytest.param({"closedNetwork": False}, {"open": True}, id="an open network"),
        pytest.param(
            ALL,
            {
                "file": {"reach": "apiServer", "gpuAllocation": "claims"},
                "keda": {"prometheus": "http://prometheus:9090"},
                "repartition": True,
                "customResources": True,
                "kserveObjects": True,
            },
            id="everything",
        ),
    ],
)
def test_the_rights_are_those_of_the_chart_at_home(given: Json, at_home: Json) -> None:
    cluster = {name: value for name, value in at_home.items() if name != "open"}
    own = {**{"namespaces": ["vision"], "jobsNamespace": "checks"}, **given}
    file = {**cluster.get("file", {}), "jobs": {"namespace": own["jobsNamespace"]}}
    network = {"networkPolicy": {"models": "open"}} if at_home.get("open") else {}
    home = objects({"cluster": {**cluster, "namespaces": own["namespaces"], "file": file}, **network})
    found = member(own)
    assert rights(found) == rights(home)
    used = {each["roleRef"]["name"] for each in found if each["kind"].endswith("Binding")}
    assert used == {each["metadata"]["name"] for each in found if each["kind"] == "ClusterRole"}


@pytest.mark.parametrize(
    ("given", "file"),
    [
        pytest.param({"closedNetwork": False}, {}, id="the least"),
        pytest.param({"closedNetwork": True}, {"network": {}}, id="a closed network"),
        pytest.param(
            ALL,
            {
                "network": {"egress": []},
                "reach": "apiServer",
                "keda": {"prometheus": "http://prometheus:9090"},
                "gpuAllocation": "claims",
                "repartition": {},
                "customResources": True,
                "kserveObjects": True,
            },
            id="everything",
        ),
    ],
)
def test_joining_gives_the_rights_of_this_chart(given: Json, file: Json) -> None:
    own = {"namespaces": ["vision"], "jobsNamespace": "checks", **given}
    document = {**file, "jobs": {"namespace": own["jobsNamespace"]}}
    made = manifests(document, namespaces=own["namespaces"], account=Account("fairlead-access", "control-plane"))
    assert rights(made, prefix="fairlead-") == rights(member(own))
    assert [each["metadata"]["name"] for each in made if each["kind"] == "Namespace"] == [
        "fairlead-access",
        *own["namespaces"],
        own["jobsNamespace"],
    ]
    kinds = [
        [each["spec"] for each in one if each["kind"] == "CustomResourceDefinition"] for one in (made, member(own))
    ]
    assert kinds[0] == kinds[1]


def test_every_binding_is_for_the_control_plane_s_account() -> None:
    found = member(ALL)
    (account,) = (each for each in found if each["kind"] == "ServiceAccount")
    assert (account["metadata"]["name"], account["automountServiceAccountToken"]) == ("robot", False)
    subjects = [each["subjects"] for each in found if each["kind"].endswith("Binding")]
    assert subjects
    assert all(each == [{"kind": "ServiceAccount", "name": "robot", "namespace": NAMESPACE}] for each in subjects)


@pytest.mark.parametrize("name", ["role.yaml", "crds.yaml", "kserve_role.yaml", "adapter-rules.yaml"])
def test_files_are_those_of_the_chart_at_home(name: str) -> None:
    assert (MEMBER / "files" / name).read_text() == (CHART / "files" / name).read_text()


@pytest.mark.parametrize("name", ["role.yaml", "crds.yaml", "kserve_role.yaml"])
def test_files_of_the_command_line_are_those_of_the_chart_at_home(name: str) -> None:
    assert (Path(join.__file__).with_name(name)).read_text() == (CHART / "files" / name).read_text()


def test_kinds_monitors_and_adapter_rules_are_those_of_the_chart_at_home() -> None:
    home = objects(
        {
            "cluster": {"customResources": True, "namespaces": ["vision", "text"]},
            "monitoring": {"monitors": True, "adapterRules": True, "labels": {"release": "prometheus"}},
        }
    )
    for kind, at in (("CustomResourceDefinition", "spec"), ("PodMonitor", "spec"), ("ConfigMap", "data")):
        specs = [each[at] for each in member(ALL) if each["kind"] == kind]
        assert specs
        assert all(spec in [each[at] for each in home if each["kind"] == kind] for spec in specs), kind
    assert not {"CustomResourceDefinition", "PodMonitor", "ConfigMap"} & {each["kind"] for each in member({})}


def test_namespaces_are_made_once_and_stay() -> None:
    made = [each for each in member({"namespaces": ["a", "b"], "jobsNamespace": "a"}) if each["kind"] == "Namespace"]
    assert [each["metadata"]["name"] for each in made] == ["a", "b"]
    assert all(each["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"} for each in made)
    assert not [each for each in member({"createNamespaces": False}) if each["kind"] == "Namespace"]


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        pytest.param({"namespace": "a"}, "additional properties 'namespace' not allowed", id="a misspelt value"),
        pytest.param({"namespaces": []}, "/namespaces", id="no namespace"),
        pytest.param({"namespaces": ["A"]}, "/namespaces/0", id="no label"),
        pytest.param({"reach": "proxy"}, "/reach", id="another way"),
        pytest.param({"readNodes": False, "repartition": {"enabled": True}}, "so set readNodes", id="blind cutting"),
    ],
)
def test_wrong_values_are_refused(wrong: Json, sentence: str) -> None:
    with pytest.raises(helm.HelmError, match=sentence):
        member(wrong)


def test_the_readme_the_comments_and_the_schema_know_every_value() -> None:
    assert (MEMBER / "README.md").read_text() == readme(MEMBER), "write it with: python -m tests.charts.readme"
    with helm.Chart.load(MEMBER) as chart:
        schema: dict[str, Any] = chart.schema or {}
        assert (
            set(schema["properties"]) - {"global"}
            == set(chart.values)
            == {name.partition(".")[0] for name, _ in commented(MEMBER)}
        )


def test_the_versions_are_those_of_the_chart_at_home() -> None:
    home, own = (yaml.safe_load((chart / "Chart.yaml").read_text()) for chart in (CHART, MEMBER))
    assert {name: own[name] for name in ("version", "appVersion", "kubeVersion")} == {
        name: home[name] for name in ("version", "appVersion", "kubeVersion")
    }
