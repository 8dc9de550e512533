"""Each alert of the chart fires when it should, is quiet when it should, and leads to its runbook."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.charts.alert_cases import CASES, Case
from tests.charts.chart import ROOT, objects
from tests.charts.promtool import check_alert

REPOSITORY = "https://git.example.com/fairlead/blob/main"
ALERTS = {"monitoring": {"alerts": True, "repository": f"{REPOSITORY}/"}}
RUNBOOK = ROOT / "docs" / "reference" / "alerts.md"


def rules(values: dict[str, Any] = ALERTS) -> list[dict[str, Any]]:
    """Return the rules as a cluster gets them."""
    (found,) = (each for each in objects(values) if each["kind"] == "PrometheusRule")
    return [rule for group in found["spec"]["groups"] for rule in group["rules"]]


RULES = {rule["alert"]: rule for rule in rules() if "alert" in rule}
RECORDS = [rule for rule in rules() if "record" in rule]
EACH_MINUTE = "1m"
"""How often the rules of objectives are evaluated, on which their counts of failures depend."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.alert}: {case.id}")
def test_an_alert_fires_when_it_should_and_else_does_not(case: Case, tmp_path: Path) -> None:
    rule = RULES[case.alert]
    tested = {**rule, "annotations": {"summary": rule["annotations"]["summary"]}}
    labels = {**rule["labels"], **case.labels}
    fires = [{"exp_labels": labels, "exp_annotations": {"summary": case.summary}}] if case.summary else []
    if "fairlead:" in rule["expr"]:
        more = {"records": RECORDS, "interval": EACH_MINUTE}
        check_alert(tmp_path, rule=tested, series=case.series, at=case.at, expected=fires, **more)
    else:
        check_alert(tmp_path, rule=tested, series=case.series, at=case.at, expected=fires)


def test_rules_of_recorded_series_are_evaluated_as_often_as_their_counts_assume() -> None:
    (found,) = (each for each in objects(ALERTS) if each["kind"] == "PrometheusRule")
    for group in found["spec"]["groups"]:
        reads = [rule for rule in group["rules"] if "fairlead:" in rule["expr"]]
        assert not reads or group["interval"] == EACH_MINUTE
    counts = [rule["expr"] for rule in RULES.values() if "fairlead:objective_failures" in rule["expr"]]
    assert len(counts) == 3
    assert all(" 60 * sum_over_time(" in count for count in counts)


def test_every_alert_is_proved_both_ways() -> None:
    assert {case.alert for case in CASES if case.summary} == set(RULES)
    assert {case.alert for case in CASES if not case.summary} == set(RULES)


def test_every_alert_leads_to_its_section_of_the_runbook() -> None:
    sections = re.findall(r"^## (\w+)$", RUNBOOK.read_text(), re.MULTILINE)
    assert sections == list(RULES)
    for name, rule in RULES.items():
        assert rule["annotations"]["runbook_url"] == f"{REPOSITORY}/docs/reference/alerts.md#{name.lower()}"
    bare = [rule for rule in rules({"monitoring": {"alerts": True}}) if "alert" in rule]
    assert {rule["annotations"]["runbook_url"].partition("#")[0] for rule in bare} == {"docs/reference/alerts.md"}


def test_what_is_rendered_has_no_slot_left() -> None:
    assert not re.search("RELEASE_|RUNBOOK", str(RULES))


def test_an_alert_about_a_service_names_it_with_its_namespace() -> None:
    about = [rule for rule in RULES.values() if "$labels.service" in str(rule["annotations"])]
    assert len(about) == 12
    assert all("$labels.namespace }}/{{ $labels.service" in rule["annotations"]["summary"] for rule in about)
