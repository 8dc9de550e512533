"""A question about a model as a Job: the model is laid out as for a replica, then the runtime is asked. Pure.

What it makes of the model, its pod brings to the control plane; a request that the model is to answer comes from there.

Nothing of it stays: it ends itself at its deadline and is removed some time after its end, also where whoever made it
was killed.
"""

import math
from dataclasses import replace

from integrations.clusters.base import Desired, DesiredRevision, Job
from integrations.clusters.flags import python_flags
from integrations.clusters.kubernetes.manifests import accelerators, calling
from integrations.clusters.kubernetes.manifests.names import MANAGED, Manifest
from integrations.clusters.kubernetes.manifests.pods import pod_template
from integrations.clusters.kubernetes.options import Options

ASK = "ask"
JOB = "fairlead/job"
DIGEST = "fairlead/artifact-digest"
"""On a job's pod: the one model that it may fetch from the registry."""
RESULT = "fairlead/result"
"""On a job's pod: the one result that it may bring."""
REQUEST = "fairlead/request"
"""On a job's pod: the one request that it may fetch."""
_OF_A_SERVER = ("ports", "startupProbe", "readinessProbe", "livenessProbe", "lifecycle")
_VOLUMES = ("models", "tmp", "shm")
_MODEL_NAME, _MODEL_VERSION = "model", "1"
_MADE = "/tmp/made"  # noqa: S108 - in a volume of the pod
REMOVED_AFTER_S = 120


def job(asked: Job, name: str, options: Options) -> Manifest:
    """Return the Job; raises InvalidInput for an artifact that no pod can reach.

    It takes the model from where replicas do, past the cache that those share: that may be a claim of other namespaces.
    """
    options = replace(options, model_cache=None)
    model = DesiredRevision(
        name=name,
        model_name=_MODEL_NAME,
        model_version=_MODEL_VERSION,
        artifact_uri=asked.artifact_uri,
        artifact_digest=asked.artifact_digest,
        artifact_origin=asked.artifact_origin,
        replicas=1,
        weight_percent=0,
        model_config=asked.model_config,
        env=asked.env,
        is_code=asked.is_code,
        resources=asked.resources,
    )
    desired = Desired(options.jobs_namespace, name, 1, (model,))
    pod = dict(pod_template(desired, model, options)["spec"])
    (runtime,) = pod["containers"]
    mounts = [mount for mount in runtime["volumeMounts"] if mount["name"] in _VOLUMES]
    folder = next(mount["mountPath"] for mount in mounts if mount["name"] == "models")
    if asked.result_id or asked.request_id:
        mounts.append(calling.mount())
        pod["volumes"] = [each for each in pod["volumes"] if each != calling.volume(options)] + [
            calling.volume(options)
        ]
    ask = {key: value for key, value in runtime.items() if key not in _OF_A_SERVER} | {"volumeMounts": mounts}
    used = {mount["name"] for container in (*pod["initContainers"], ask) for mount in container["volumeMounts"]}
    pod["volumes"] = [volume for volume in pod["volumes"] if volume["name"] in used]
    pod.pop("serviceAccountName")  # the namespace's own; what its pods may fetch is by their annotation
    question = [
        asked.kind.value,
        f"{folder}/{_MODEL_NAME}",
        *asked.arguments,
        *(_bringing(asked, options) if asked.result_id else ()),
        *(_fetching(asked, options) if asked.request_id else ()),
        "--json",
    ]
    if asked.kind.loads_the_model:
        question += accelerators.flags(asked.resources) + python_flags(allowed=options.allow_python_models)
    pod["containers"] = [{**ask, "name": ASK, "args": question}]
    pod["restartPolicy"] = "Never"
    if options.job_node_selector and not asked.resources.accelerator:  # the resource says which nodes have it
        pod["nodeSelector"] = dict(options.job_node_selector)
    if options.job_tolerations:
        pod["tolerations"] = [*pod.get("tolerations", ()), *(dict(each) for each in options.job_tolerations)]
    labels = {**MANAGED, JOB: name}
    ids = {RESULT: asked.result_id, REQUEST: asked.request_id}
    annotations = {DIGEST: asked.artifact_digest} | {key: value for key, value in ids.items() if value}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": options.jobs_namespace, "labels": labels},
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": max(1, math.ceil(asked.timeout_s)),
            "ttlSecondsAfterFinished": REMOVED_AFTER_S,
            "template": {
                "metadata": {"labels": labels, "annotations": annotations},
                "spec": pod,
            },
        },
    }


def _bringing(asked: Job, options: Options) -> list[str]:
    """Return the flags by which the folder that is made comes back; raises InvalidInput where nothing says how."""
    return [
        f"--output={_MADE}",
        f"--bring-to={calling.address(options, f'results/{asked.result_id}')}",
        *_showing(options),
    ]


def _fetching(asked: Job, options: Options) -> list[str]:
    """Return the flags by which the request comes to the pod; raises InvalidInput where nothing says how."""
    return [f"--request-from={calling.address(options, f'requests/{asked.request_id}')}", *_showing(options)]


def _showing(options: Options) -> list[str]:
    """Return the flags by which the pod shows who it is."""
    authority = calling.authority_file(options)
    return [
        f"--token-file={calling.token_file()}",
        *([f"--certificate-authority={authority}"] if authority else []),
    ]
