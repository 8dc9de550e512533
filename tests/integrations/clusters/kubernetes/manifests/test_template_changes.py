"""How a pinned pod template differs from a present one, as a sentence says it."""

from dataclasses import replace
from typing import Any

import pytest

from integrations.clusters.kubernetes.manifests import deployments
from integrations.clusters.kubernetes.manifests.template_changes import template_changes
from integrations.clusters.kubernetes.options import Options
from tests.integrations._support.manifests import given


def templates(options: Options | None = None, case: str = "canary") -> dict[str, Any]:
    desired, _, given_options = given(case)
    one = replace(desired, revisions=desired.revisions[:1])
    made = deployments(one, options or given_options)
    return {each["metadata"]["name"]: each["spec"]["template"] for each in made}


@pytest.mark.parametrize("case", ["canary", "transformer", "explainer", "slice"])
def test_the_same_templates_have_no_changes(case: str) -> None:
    assert template_changes(templates(case=case), templates(case=case)) == ""


def test_a_changed_image_and_fields_of_the_cluster_file_are_named_with_both_values() -> None:
    _, _, options = given("canary")
    other = replace(options, runtime_image="runtime:2", drain_s=options.drain_s + 30, allow_python_models=True)
    found = template_changes(templates(), templates(other))
    grace = options.pre_stop_s + options.drain_s + 5
    assert found.split("; ")[0] == f"image {options.runtime_image} -> runtime:2"
    assert f"terminationGracePeriodSeconds {grace} -> {grace + 30}" in found
    assert "containers[runtime].args changed" in found


def test_values_of_variables_are_left_out() -> None:
    before, after = templates(), templates()
    container = next(iter(after.values()))["spec"]["containers"][0]
    container["env"] = [{"name": "TOKEN", "value": "secret"}]
    found = template_changes(before, after)
    assert "containers[runtime].env[TOKEN] added" in found
    assert "secret" not in found


def test_what_the_api_server_leaves_out_is_no_change() -> None:
    before, after = templates(), templates()
    for each in after.values():
        each["spec"]["containers"][0]["envFrom"] = []
        each["spec"]["hostname"] = ""
    assert template_changes(before, after) == ""


def test_many_changes_are_cut_and_counted() -> None:
    before, after = templates(), templates()
    for each in after.values():
        each["spec"] = {**each["spec"], **{f"field{number}": number for number in range(9)}}
    assert template_changes(before, after).endswith("; and 3 more")
