"""What pods hand to the process that opens a model: no token, no credentials, no right, no file to change.

Of manifests as they are rendered: every golden case, from all sources of models, and every kind of job.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from integrations.artifacts.store import digest_of_folder
from integrations.clusters.base import Candidate, Desired, Job, JobKind
from integrations.clusters.kubernetes.manifests import job, render
from integrations.clusters.kubernetes.manifests.jobs.replay import replay
from integrations.clusters.kubernetes.options import ModelCache, ModelSource, Options
from serving_runtime.__main__ import main
from serving_runtime.artifacts.download import Patience
from serving_runtime.artifacts.upload import bring
from serving_runtime.common.errors import ModelError
from tests._support.golden import BASE
from tests.integrations._support.manifests import GOLDEN, given
from tests.releases.packages import first_runtime
from tests.security._support.stowaways import stowaway

CASES = sorted(path.name.removesuffix(".in.yaml") for path in GOLDEN.glob("*.in.yaml"))
SOURCES = list(ModelSource)
OPENS = {"runtime", "ask", "transformer", "explainer", "predictor"}
"""The containers in which a model's files, or an image of a deployer's, run."""
TOKENS = {"control-plane": "fairlead", "records": "fairlead-records"}
READS = {"made", "spool"}
"""Folders of who opens a model that others read: what a build makes, what is recorded. They believe neither."""
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
}
Pod = dict[str, Any]


def options_of(source: ModelSource, options: Options) -> Options:
    """Return options with all that could reach the wrong container."""
    return replace(
        options,
        models_from=source,
        artifacts_claim="models",
        artifacts_root=options.artifacts_root or "/data/artifacts",
        model_cache=None if source is ModelSource.CLAIM else ModelCache(claim="cache"),
        origin_secret="bucket",
        service_account_annotations={"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/models"},
        name="eu",
        control_plane_url="https://fairlead.example",
        control_plane_ca_config_map="authority",
        payloads_folder="/var/lib/fairlead/payloads/eu",
        gpu_runtime_image="cuda:1",
    )


def templates(source: ModelSource) -> Iterator[tuple[str, Pod]]:
    """Yield every pod template that the driver makes, with what it is of."""
    for case in CASES:
        desired, shares, options = given(case)
        options = replace(options_of(source, options), keda=options.keda)
        for manifest in render(desired, shares, options):
            if manifest["kind"] == "Deployment":
                yield f"{case} {manifest['metadata']['name']}", manifest["spec"]["template"]
    options = options_of(source, given(BASE)[2])
    artifact = {"artifact_uri": f"file://{options.artifacts_root}/aaaa", "artifact_digest": "sha256:aaaa"}
    origin = "s3://models/digits/"
    for kind in JobKind:
        ids = {JobKind.TRY: {"request_id": "1"}, JobKind.BUILD: {"result_id": "1"}}.get(kind, {})
        asked = Job(kind, timeout_s=60, artifact_origin=origin, **artifact, **ids)
        yield f"job {kind}", job(asked, "ask", options)["spec"]["template"]
    candidate = Candidate(
        "version 1", "digits", "1", namespace="a", service="digits", artifact_origin=origin, **artifact
    )
    yield "replay", replay(candidate, "replay", {}, options)["spec"]["template"]


def containers(template: Pod) -> list[Pod]:
    spec = template["spec"]
    return [*spec.get("initContainers", ()), *spec["containers"]]


def mounts(container: Pod) -> dict[str, Pod]:
    return {each["name"]: each for each in container["volumeMounts"]}


def test_all_kinds_of_pods_are_looked_at() -> None:
    names = {each["name"] for source in SOURCES for _, made in templates(source) for each in containers(made)}
    assert names == {"prepare", "upload", "reports", *OPENS}


@pytest.mark.parametrize("source", SOURCES)
def test_pods_are_restricted_and_have_no_token_of_the_cluster(source: ModelSource) -> None:
    for what, template in templates(source):
        spec = template["spec"]
        assert spec["automountServiceAccountToken"] is False, what
        assert spec["enableServiceLinks"] is False, what
        assert spec["securityContext"]["runAsNonRoot"] is True, what
        assert spec["securityContext"]["runAsUser"] > 0, what
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, what
        assert not {"hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace"} & spec.keys(), what
        for container in containers(template):
            assert container["securityContext"] == RESTRICTED, (what, container["name"])


@pytest.mark.parametrize("source", SOURCES)
def test_no_pod_can_fill_the_disk_of_its_node(source: ModelSource) -> None:
    for what, template in templates(source):
        empty = [each["emptyDir"] for each in template["spec"]["volumes"] if "emptyDir" in each]
        assert empty, what
        assert all(each.get("sizeLimit") for each in empty), what
        if not what.startswith(("job ", "replay")):
            continue
        on_disk = sum(int(each["sizeLimit"].removesuffix("Gi")) for each in empty if "medium" not in each)
        for container in containers(template):
            resources = container["resources"]
            assert resources["limits"]["ephemeral-storage"] == f"{on_disk + 1}Gi", what
            assert resources["requests"]["ephemeral-storage"] == "0", "a node needs not have all of it free"


@pytest.mark.parametrize("source", SOURCES)
def test_who_opens_a_model_has_no_token(source: ModelSource) -> None:
    for what, template in templates(source):
        volumes = {each["name"]: each for each in template["spec"]["volumes"]}
        for name, volume in volumes.items():
            said = [each["serviceAccountToken"] for each in volume.get("projected", {}).get("sources", ())[:1]]
            assert [each["audience"] for each in said] == ([TOKENS[name]] if name in TOKENS else []), (what, name)
            assert "secret" not in volume, (what, name)
        for container in containers(template):
            who = what, container["name"]
            assert all("value" in each for each in container.get("env", ())), who
            if container["name"] in OPENS:
                assert "envFrom" not in container, who
                assert not TOKENS.keys() & mounts(container).keys(), who
            if container["name"] == "reports":
                assert mounts(container).keys() == {"records", "spool"}, who
                assert mounts(container)["records"]["readOnly"] is True, who
                assert {each["name"] for each in container.get("env", ())} <= {"FAIRLEAD_LOG_FORMAT"}, who
                assert "envFrom" not in container, who


def test_what_is_recorded_is_brought_by_a_container_of_its_own_that_ends_after_the_one_with_the_model() -> None:
    for what, template in templates(ModelSource.REGISTRY):
        runs = [each for each in template["spec"]["containers"] if each["name"] == "runtime"]
        runs = [each for each in runs if "proxy" not in each["command"]]  # in front of a container of its author's
        beside = [each for each in template["spec"]["initContainers"] if each["name"] == "reports"] if runs else []
        assert [each["restartPolicy"] for each in beside] == (["Always"] if runs and what != "replay" else []), what
        assert not any({"readinessProbe", "startupProbe", "livenessProbe"} & each.keys() for each in beside), what
        volumes = {each["name"]: each for each in template["spec"]["volumes"]}
        assert not beside or volumes["spool"] == {"name": "spool", "emptyDir": {"sizeLimit": "1Gi"}}, what


@pytest.mark.parametrize("source", SOURCES)
def test_who_opens_a_model_changes_nothing_that_another_container_reads_but_what_it_is_to_make(
    source: ModelSource,
) -> None:
    for what, template in templates(source):
        by_name = {each["name"]: each for each in containers(template)}
        volumes = {each["name"]: each for each in template["spec"]["volumes"]}
        for container in by_name.values():
            if container["name"] not in OPENS:
                continue
            who = what, container["name"]
            others = [mounts(other) for name, other in by_name.items() if name != container["name"]]
            for name, mount in mounts(container).items():
                if mount.get("readOnly"):
                    continue
                assert "emptyDir" in volumes[name], (*who, name)
                shared = [other[name] for other in others if name in other]
                assert shared == [] or name in READS, (*who, name)
                assert name != "made" or [each.get("readOnly") for each in shared] in ([], [True]), who
            assert mounts(container).get("models", {"readOnly": True})["readOnly"] is True, who


@pytest.mark.parametrize("source", SOURCES)
def test_who_opens_a_model_takes_no_control_calls_whatever_its_service_says(source: ModelSource) -> None:
    for what, template in templates(source):
        for container in containers(template):
            if container["name"] in OPENS:
                said = [each["value"] for each in container["env"] if each["name"] == "FAIRLEAD_ALLOW_CONTROL_CALLS"]
                assert said == ["false"], (what, container["name"])


def test_only_the_step_that_fetches_gets_an_identity_of_amazons() -> None:
    for what, template in templates(ModelSource.ORIGIN):
        skipped = template["metadata"]["annotations"]["eks.amazonaws.com/skip-containers"].split(",")
        assert set(skipped) == {each["name"] for each in containers(template)} - {"prepare"}, what


def prepare_of(options: Options, artifact: Path, repository: Path) -> tuple[list[str], dict[str, str]]:
    """Return arguments and variables of the container that fetches, with the folders of this machine."""
    asked = Job(JobKind.INSPECT, f"file://{options.artifacts_root}/aaaa", 60, digest_of_folder(artifact))
    prepare = job(asked, "ask", options)["spec"]["template"]["spec"]["initContainers"][0]
    places = {
        "/mnt/artifacts/aaaa": str(artifact),
        "/mnt/models": str(repository),
        "/dev/termination-log": str(repository.with_name("message")),
    }
    arguments = [_replaced(each, places) for each in prepare["args"]]
    return ["prepare", *arguments], {each["name"]: each["value"] for each in prepare.get("env", ())}


def _replaced(argument: str, places: dict[str, str]) -> str:
    flag, _, value = argument.partition("=")
    return f"{flag}={places.get(value, value)}"


@pytest.mark.parametrize("allowed", [True, False], ids=["code allowed", "no code"])
def test_files_that_are_code_do_not_come_to_a_pod_where_no_code_may_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, allowed: bool
) -> None:
    model = stowaway(tmp_path)
    options = replace(given(BASE)[2], allow_python_models=allowed)
    arguments, variables = prepare_of(options, model.artifact, tmp_path / "models")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert main(arguments) == 0
    laid_out = {path.name for path in (tmp_path / "models" / "model" / "1").iterdir()}
    assert laid_out == ({path.name for path in model.artifact.iterdir()} if allowed else {"model.onnx"})


def test_a_runtime_of_the_release_before_lays_models_out_as_it_did(tmp_path: Path) -> None:
    model = stowaway(tmp_path)
    arguments, variables = prepare_of(given(BASE)[2], model.artifact, tmp_path / "models")
    assert variables
    env = {**os.environ, **first_runtime(tmp_path / "first"), **variables}
    done = subprocess.run([sys.executable, "-m", "serving_runtime", *arguments], env=env, cwd=tmp_path, check=False)
    assert done.returncode == 0
    assert (tmp_path / "models" / "model" / "1" / "model.onnx").is_file()


@pytest.mark.parametrize("place", ["token", "1/token"])
@pytest.mark.parametrize("target", ["file", "folder"])
def test_what_a_build_leaves_does_not_bring_the_token_of_who_uploads(tmp_path: Path, place: str, target: str) -> None:
    secret = tmp_path / "secrets"
    secret.mkdir()
    (secret / "token").write_text("the token")
    made = tmp_path / "made"
    (made / "1").mkdir(parents=True)
    (made / "1" / "model.onnx").write_bytes(b"a model")
    (made / place).symlink_to(secret if target == "folder" else secret / "token")
    with pytest.raises(ModelError, match=f"^{place} is no file; only files and folders can be sent$"):
        bring(made, "http://127.0.0.1:1/", secret / "token", None, Patience(tries=1))


def sized(model_bytes: int) -> Desired:
    desired = given(BASE)[0]
    return replace(desired, revisions=tuple(replace(each, artifact_bytes=model_bytes) for each in desired.revisions))


def deployments(desired: Desired) -> list[dict[str, Any]]:
    _, shares, options = given(BASE)
    return [each for each in render(desired, shares, options) if each["kind"] == "Deployment"]


def test_a_pod_requests_the_disk_that_its_model_needs_and_may_fill_no_more() -> None:
    (made,) = deployments(sized(3 << 30))
    pod = made["spec"]["template"]["spec"]
    (prepare,), (runtime,) = pod["initContainers"], pod["containers"]
    assert prepare["resources"]["requests"]["ephemeral-storage"] == f"{6 * 1024 + 64}Mi", "an archive and its files"
    assert runtime["resources"]["requests"]["ephemeral-storage"] == f"{3 * 1024 + 64}Mi"
    assert {"name": "models", "emptyDir": {"sizeLimit": "7Gi"}} in pod["volumes"]
