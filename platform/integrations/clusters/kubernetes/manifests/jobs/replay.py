"""Replay Job manifest: a version answers recorded requests in the service's namespace. Pure.

Its pod is that of a revision (`pods`), with the patches, except for what makes a replica: it has none of the labels by
which Services, budgets, autoscalers and the driver itself find replicas, and instead of the server it runs the command
`replay`. It ends by itself when requests stop, and all its objects are removed then.
"""

import copy
from dataclasses import replace

from integrations.clusters.base import Candidate, Desired, DesiredRevision
from integrations.clusters.flags import python_flags
from integrations.clusters.kubernetes.manifests.images import refuse_images
from integrations.clusters.kubernetes.manifests.jobs.job import REMOVED_AFTER_S
from integrations.clusters.kubernetes.manifests.names import HTTP_PORT, JOB, MANAGED, REPLAY, Manifest
from integrations.clusters.kubernetes.manifests.patched import patched
from integrations.clusters.kubernetes.manifests.workloads import deployment
from integrations.clusters.kubernetes.manifests.workloads.pods import MODELS, RUNTIME
from integrations.clusters.kubernetes.manifests.workloads.queues import default_queue
from integrations.clusters.kubernetes.manifests.workloads.volumes import with_disk_limits
from integrations.clusters.kubernetes.options import Options

PORT, PATH = HTTP_PORT, "/replay"
_IDLE_S = 120
_LONGEST_S = 24 * 3600
_GRACE_S = 5
_OF_A_REPLICA = ("fairlead/", "prometheus.io/")


def labels_of(candidate: Candidate) -> dict[str, str]:
    """Return the labels of all objects of a replay, in all attempts."""
    return {**MANAGED, "app.kubernetes.io/part-of": candidate.service, REPLAY: candidate.replay}


def replay(candidate: Candidate, name: str, owner: Manifest, options: Options) -> Manifest:
    """Return the Job, which is deleted with its owner; raises InvalidInput for an artifact that no pod can reach."""
    template = copy.deepcopy(_as_revision(candidate, name, options)["spec"]["template"])
    labels = {**labels_of(candidate), JOB: name}
    pod, annotations = template["spec"], template["metadata"]["annotations"]
    added = {key: value for key, value in annotations.items() if not key.startswith(_OF_A_REPLICA)}
    runtime = next(each for each in pod["containers"] if each["name"] == RUNTIME)
    runtime["args"] = [
        "replay",
        f"{MODELS}/{candidate.model_name}",
        f"--http-port={PORT}",
        f"--idle-timeout-secs={_IDLE_S}",
        *python_flags(allowed=options.allow_python_models),
    ]
    runtime["ports"] = [each for each in runtime["ports"] if each["containerPort"] == PORT]
    runtime.pop("lifecycle", None)
    pod["restartPolicy"] = "Never"
    pod["terminationGracePeriodSeconds"] = _GRACE_S
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": candidate.namespace,
            "labels": labels | default_queue(options),
            "ownerReferences": [owner],
        },
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": _LONGEST_S,
            "ttlSecondsAfterFinished": REMOVED_AFTER_S,
            "template": {"metadata": {"labels": labels, "annotations": added}, "spec": with_disk_limits(pod)},
        },
    }


def _as_revision(candidate: Candidate, name: str, options: Options) -> Manifest:
    """Return the Deployment that a revision like the candidate would have."""
    revision = DesiredRevision(
        name=name,
        model_name=candidate.model_name,
        model_version=candidate.model_version,
        artifact_uri=candidate.artifact_uri,
        artifact_digest=candidate.artifact_digest,
        artifact_origin=candidate.artifact_origin,
        replicas=1,
        weight_percent=0,
        model_config=candidate.model_config,
        env=candidate.env,
        secret_env=candidate.secret_env,
        is_code=candidate.is_code,
        resources=candidate.resources,
        patches=candidate.patches,
    )
    desired = Desired(candidate.namespace, candidate.service, 1, (revision,))
    untapped = replace(options, payloads_folder="")
    (made,) = patched(desired, [deployment.deployment(desired, revision, untapped)])
    refuse_images([made], options)
    return made
