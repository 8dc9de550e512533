"""Pinned pod templates in what is rendered: the same for any release, image and cluster file."""

from dataclasses import replace
from typing import Any

import pytest

from integrations.clusters.base import Desired, Patch
from integrations.clusters.kubernetes.manifests import Manifest, render
from integrations.clusters.kubernetes.manifests.names import RESTART, revision_of
from integrations.clusters.kubernetes.manifests.pinned import without_restart
from integrations.clusters.kubernetes.options import Options
from tests.integrations._support.manifests import given

BASES = ("canary", "patched", "slice", "transformer", "explainer", "registry", "tapped")


def deployments(desired: Desired, options: Options) -> dict[str, Manifest]:
    made = render(desired, {}, options)
    return {each["metadata"]["name"]: each for each in made if each["kind"] == "Deployment"}


def pinned(desired: Desired, options: Options, **more: Any) -> Desired:
    """Return the desired state with the pod templates pinned that are rendered now."""
    made = {name: without_restart(each["spec"]["template"]) for name, each in deployments(desired, options).items()}

    def its(revision: str) -> dict[str, Manifest]:
        return {name: each for name, each in made.items() if revision_of(name) == revision}

    return replace(
        desired,
        revisions=tuple(replace(each, pod_templates=its(each.name), **more) for each in desired.revisions),
    )


@pytest.mark.parametrize("case", BASES)
def test_pinned_templates_render_the_same_deployments(case: str) -> None:
    desired, _, options = given(case)
    assert deployments(pinned(desired, options), options) == deployments(desired, options)


@pytest.mark.parametrize("case", BASES)
def test_nothing_of_the_cluster_file_changes_a_pinned_template(case: str) -> None:
    desired, _, options = given(case)
    other = replace(
        options,
        runtime_image="runtime:2",
        gpu_runtime_image="",
        drain_s=options.drain_s + 60,
        allow_python_models=not options.allow_python_models,
        shared_memory_bytes=1 << 30,
        max_model_bytes=options.max_model_bytes * 3,
        artifacts_root="/elsewhere",
    )
    assert deployments(pinned(desired, options), other) == deployments(desired, options)


def test_only_the_number_of_restarts_is_written_into_it() -> None:
    desired, _, options = given("canary")
    for name, each in deployments(pinned(desired, options, restart_number=7), options).items():
        before = deployments(desired, options)[name]["spec"]["template"]
        after = each["spec"]["template"]
        assert after["metadata"]["annotations"][RESTART] == "7"
        assert without_restart(after) == without_restart(before)


@pytest.mark.parametrize(
    "patch",
    [
        {"operations": ({"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--x"},)},
        {"operations": ({"op": "copy", "from": "/spec/template/spec", "path": "/spec/template/spec/other"},)},
        {"operations": ({"op": "replace", "path": "/spec/template", "value": {"metadata": {}}},)},
        {"merge": {"spec": {"template": {"spec": {"priorityClassName": "high"}}}}},
    ],
    ids=["add", "copy", "replace", "merge"],
)
def test_a_patch_of_the_template_is_in_it_already_and_one_of_the_rest_still_counts(patch: dict[str, Any]) -> None:
    desired, _, options = given("canary")
    kept = pinned(desired, options)
    rest = Patch("patches[1]", "Deployment", merge={"spec": {"minReadySeconds": 9}})
    patches = (Patch("patches[0]", "Deployment", **patch), rest)
    patched = replace(kept, revisions=tuple(replace(each, patches=patches) for each in kept.revisions))
    plain = deployments(kept, options)
    for name, each in deployments(patched, options).items():
        assert each["spec"]["template"] == plain[name]["spec"]["template"]
        assert each["spec"]["minReadySeconds"] == 9


def test_a_patch_of_the_whole_spec_cannot_change_it() -> None:
    desired, _, options = given("canary")
    kept = pinned(desired, options)
    for name, each in deployments(kept, options).items():
        spec = {**each["spec"], "template": {**each["spec"]["template"], "spec": {"containers": []}}}
        patch = Patch("patches[0]", "Deployment", name, ({"op": "replace", "path": "/spec", "value": spec},))
        patched = replace(kept, revisions=tuple(replace(one, patches=(patch,)) for one in kept.revisions))
        assert deployments(patched, options)[name] == each
