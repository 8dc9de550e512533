"""Kubernetes Job runner for questions about a model: creates a Job, reads its pod's output, deletes the Job.

A caller that is killed leaves a Job that ends at its deadline and is removed by Kubernetes itself.
"""

import json
import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from common.errors import FairleadError, InvalidInput, NotFound, Unavailable
from integrations.clusters.base import Failure, FailureReason, Job, JobIdentity, JobResult, OnStage, WorkloadIdentity
from integrations.clusters.kubernetes import manifests
from integrations.clusters.kubernetes.api import resource_types
from integrations.clusters.kubernetes.api.client import Api
from integrations.clusters.kubernetes.manifests.jobs.job import ASK, DIGEST, REQUEST, RESULT, longest_wait_s
from integrations.clusters.kubernetes.manifests.names import JOB
from integrations.clusters.kubernetes.manifests.network.policies import of_jobs
from integrations.clusters.kubernetes.manifests.workloads import claims
from integrations.clusters.kubernetes.observe.failures import failure_of, statuses
from integrations.clusters.kubernetes.options import ModelSource, Options

Json = Mapping[str, Any]
TIMED_OUT = 124  # what coreutils' timeout exits with
_LOOK_EVERY_S, _LISTEN_EVERY_S = 0.5, 3.0
_OUTPUT_LINES, _MAX_OUTPUT_BYTES, _READ_S = 1000, 4 << 20, 30.0
_HOPELESS = "ImagePullBackOff", "InvalidImageName"
"""Waiting reasons that do not pass: tried more than once, or impossible."""


def run(api: Api, options: Options, asked: Job, on_stage: OnStage | None = None) -> JobResult:
    """Run the job to its end; `exit_code` is `TIMED_OUT` at the timeout, which for checks begins on a node.

    Args:
        on_stage: receives the last line of the job's pod log, every few seconds.

    Raises:
        InvalidInput: the model cannot be reached by a pod, or the cluster has no such namespace for jobs.
        Unavailable: the cluster cannot be reached, or cannot start the job for want of its image.
    """
    name = f"fairlead-{asked.kind.value}-{secrets.token_hex(5)}"
    job = manifests.job(asked, name, options)
    try:
        for policy in of_jobs(options):
            api.apply(policy, force=True)
        made = api.create(job)
    except NotFound as error:
        raise InvalidInput(
            f"model jobs run in the namespace {options.jobs_namespace}, which the cluster has not; create it"
            f"{_with_claim(options)}, or name another in the cluster's file as jobs.namespace"
        ) from error
    try:
        for template in claims.of_job(made, asked.resources):
            api.create(template)
        return _result(api, options, asked, name, on_stage)
    finally:
        with suppress(FairleadError):  # else Kubernetes removes it some time after its end
            api.delete(resource_types.JOB, options.jobs_namespace, name, uid=made["metadata"]["uid"])


def identity_of(api: Api, caller: WorkloadIdentity) -> JobIdentity | None:
    """Return the job of a caller's pod, by what only those who run pods can set; None for other callers."""
    about = {"metadata.name": caller.pod}
    for pod in api.find(resource_types.POD, caller.namespace, about, most=1, timeout_s=_READ_S):
        metadata = pod["metadata"]
        annotations = metadata.get("annotations", {})
        if (digest := annotations.get(DIGEST, "")) and JOB in metadata.get("labels", {}):
            ids = annotations.get(RESULT, ""), annotations.get(REQUEST, "")
            return JobIdentity(caller.namespace, caller.pod, digest, *ids)
    return None


def _result(api: Api, options: Options, asked: Job, name: str, on_stage: OnStage | None) -> JobResult:
    deadline = time.monotonic() + asked.timeout_s
    latest = deadline + longest_wait_s(asked)
    listen_at = 0.0
    trouble: Failure | None = None
    while time.monotonic() < deadline:
        try:
            pods = api.list(resource_types.POD, options.jobs_namespace, {JOB: name})
            if not any(pod["spec"].get("nodeName") for pod in pods):
                deadline = min(time.monotonic() + asked.timeout_s, latest)
            for pod in pods:
                trouble = failure_of(pod) or trouble
                if (code := exit_code(pod)) is not None:
                    return _ended(api, asked, pod, code)
                if is_hopeless(pod) and trouble is not None:
                    raise _NeverStartedError(trouble.message)
                if on_stage is not None and time.monotonic() >= listen_at and _is_asked(pod):
                    listen_at = time.monotonic() + _LISTEN_EVERY_S
                    on_stage(_said(api, pod, lines=1).strip())
        except _NeverStartedError as error:
            raise Unavailable(f"the {asked.kind} of the model cannot be run on the cluster: {error}") from error
        except Unavailable:
            pass  # the API server is away for a moment; the job goes on
        time.sleep(_LOOK_EVERY_S)
    why = "" if trouble is None else f": {trouble.message}"
    return JobResult(TIMED_OUT, "", f"the {asked.kind} of the model did not finish within {asked.timeout_s:g} s{why}")


def _with_claim(options: Options) -> str:
    return f" with the claim {options.artifacts_claim}" if options.models_from is ModelSource.CLAIM else ""


class _NeverStartedError(Exception):
    """No process of the job will ever run."""


def exit_code(pod: Json) -> int | None:
    """Return the exit code of a job's pod: of the first failed container, else of the last; None while it runs."""
    last = pod["spec"]["containers"][-1]["name"]
    for status in statuses(pod):
        ended = status.get("state", {}).get("terminated")
        if ended and (ended["exitCode"] or status["name"] == last):
            return int(ended["exitCode"])
    return None


def _is_asked(pod: Json) -> bool:
    """Return whether the container that opens the model runs."""
    return any(each["name"] == ASK and "running" in each.get("state", {}) for each in statuses(pod))


def is_hopeless(pod: Json) -> bool:
    """Return whether a job's pod waits for an image that will not come."""
    return any(each.get("state", {}).get("waiting", {}).get("reason") in _HOPELESS for each in statuses(pod))


def _ended(api: Api, asked: Job, pod: Json, code: int) -> JobResult:
    failure = failure_of(pod)
    if failure is not None and (failure.container != ASK or failure.reason is FailureReason.OUT_OF_MEMORY):
        return JobResult(code, "", f"the {asked.kind} of the model failed: {failure.message}")
    said = _said(api, pod, lines=_OUTPUT_LINES)
    output = answer_in(said)
    if code == 0:
        return JobResult(0, output)
    with suppress(ValueError, KeyError, TypeError):
        return JobResult(code, output, str(json.loads(output)["error"]))
    last = next((line.strip() for line in reversed(said.splitlines()) if line.strip()), "it printed nothing")
    return JobResult(code, output, f"the {asked.kind} of the model ended with exit code {code}: {last}")


def _said(api: Api, pod: Json, *, lines: int) -> str:
    metadata = pod["metadata"]
    return api.log(
        metadata["namespace"],
        metadata["name"],
        ASK,
        previous=False,
        lines=lines,
        most_bytes=_MAX_OUTPUT_BYTES,
        timeout_s=_READ_S,
    )


def answer_in(said: str) -> str:
    """Return the last line that is a JSON object: a container's log mixes answers with complaints."""
    for line in reversed(said.splitlines()):
        with suppress(ValueError):
            if isinstance(json.loads(line), dict):
                return line
    return ""
