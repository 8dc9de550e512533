"""Job manifest for a question about a model: the model is laid out as for a replica, then opened by the runtime. Pure.

Its containers run one after the other. The one that opens the model has no token:

    prepare   fetches the model, and the request that it is to answer
    ask       opens the model
    upload    brings what was made of it to the control plane, where something is to be made

Nothing of it stays: it ends at its deadline and is removed some time after its end, also where its creator was killed.
"""

import math
from dataclasses import replace

from integrations.clusters.base import Desired, DesiredRevision, Job, JobKind
from integrations.clusters.flags import python_flags
from integrations.clusters.kubernetes.manifests.jobs import control_plane
from integrations.clusters.kubernetes.manifests.names import EGRESS, JOB, MANAGED, Manifest
from integrations.clusters.kubernetes.manifests.workloads import accelerators, queues, volumes
from integrations.clusters.kubernetes.manifests.workloads.pods import COMMAND, MODELS, pod_template
from integrations.clusters.kubernetes.manifests.workloads.secure import SECURE, without_identity
from integrations.clusters.kubernetes.options import Options

ASK, UPLOAD = "ask", "upload"
DIGEST = "fairlead/artifact-digest"
"""On a job's pod: the one model that it may fetch from the registry."""
RESULT = "fairlead/result"
"""On a job's pod: the one result that it may upload."""
REQUEST = "fairlead/request"
"""On a job's pod: the one request that it may fetch."""
_OF_A_SERVER = ("ports", "startupProbe", "readinessProbe", "livenessProbe", "lifecycle")
_VOLUMES = ("models", "tmp", "shm")
_MODEL_NAME, _MODEL_VERSION = "model", "1"
_MADE, _REQUEST_FOLDER = "/mnt/made", "/mnt/request"
_REQUEST_FILE = f"{_REQUEST_FOLDER}/request.json"
REMOVED_AFTER_S = 120
WAITS_FOR_NODE_S = 600.0


def job(asked: Job, name: str, options: Options) -> Manifest:
    """Return the Job; raises InvalidInput for an artifact that no pod can reach.

    It takes the model from where replicas do, bypassing the cache that those share: that may be a claim of other
    namespaces. It records nothing.
    """
    options = replace(options, model_cache=None, payloads_folder="")
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
    (prepare,), (runtime,) = pod["initContainers"], pod["containers"]
    ask = _ask(asked, runtime, options)
    steps = [prepare, ask]
    if asked.request_id:
        steps = [_with_request(asked, prepare, options), ask]
    if asked.result_id:
        steps.append(_upload(asked, prepare, options))
    pod["initContainers"], pod["containers"] = steps[:-1], steps[-1:]
    own = [
        volumes.empty("made", volumes.models_gib(options)),
        volumes.empty("request", volumes.REQUEST_GIB),
        # Copies of whole models: what tuning and building try, and what was made as one archive.
        volumes.empty("tmp", volumes.models_gib(options)),
        volumes.empty("upload-tmp", volumes.models_gib(options)),
    ]
    calls = [control_plane.volume(options)]
    used = {mount["name"] for step in steps for mount in step["volumeMounts"]}
    others = [volume for volume in pod["volumes"] if volume not in calls and volume["name"] != "tmp"]
    pod["volumes"] = [volume for volume in (*others, *own, *calls) if volume["name"] in used]
    pod.pop("serviceAccountName")  # the namespace's own; what its pods may fetch is by their annotation
    pod["restartPolicy"] = "Never"
    if options.job_node_selector and not asked.resources.accelerator:  # the resource says which nodes have it
        pod["nodeSelector"] = dict(options.job_node_selector)
    if options.job_tolerations:
        pod["tolerations"] = [*pod.get("tolerations", ()), *(dict(each) for each in options.job_tolerations)]
    labels = {**MANAGED, JOB: name}
    granted = {EGRESS: "true"} if asked.egress else {}
    ids = {RESULT: asked.result_id, REQUEST: asked.request_id}
    annotations = {DIGEST: asked.artifact_digest} | {key: value for key, value in ids.items() if value}
    annotations |= without_identity(options, *(step["name"] for step in steps[1:]))
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": options.jobs_namespace,
            "labels": labels | queues.default_queue(options),
        },
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": max(1, math.ceil(asked.timeout_s + longest_wait_s(asked))),
            "ttlSecondsAfterFinished": REMOVED_AFTER_S,
            "template": {
                "metadata": {"labels": labels | granted, "annotations": annotations},
                "spec": volumes.with_disk_limits(pod),
            },
        },
    }


def longest_wait_s(asked: Job) -> float:
    """Return how long a job may wait for a node, in seconds, beside its time-out: checks come in large numbers."""
    return WAITS_FOR_NODE_S if asked.kind in (JobKind.INSPECT, JobKind.PROFILE) else 0.0


def _ask(asked: Job, runtime: Manifest, options: Options) -> Manifest:
    """Return the container that opens the model, derived from a replica's."""
    mounts = [mount for mount in runtime["volumeMounts"] if mount["name"] in _VOLUMES]
    question = [asked.kind.value, f"{MODELS}/{_MODEL_NAME}", *asked.arguments]
    if asked.result_id:
        question.append(f"--output={_MADE}")
        mounts.append({"name": "made", "mountPath": _MADE})
    if asked.request_id:
        question.append(f"--request={_REQUEST_FILE}")
        mounts.append({"name": "request", "mountPath": _REQUEST_FOLDER, "readOnly": True})
    question.append("--json")
    if asked.kind.loads_the_model:
        question += accelerators.flags(asked.resources) + python_flags(allowed=options.allow_python_models)
    kept = {key: value for key, value in runtime.items() if key not in _OF_A_SERVER}
    return kept | {"name": ASK, "args": question, "volumeMounts": mounts}


def _with_request(asked: Job, prepare: Manifest, options: Options) -> Manifest:
    """Return the container that fetches, with the request; raises InvalidInput where its source is unknown."""
    fetched = [f"--request-from={control_plane.address(options, f'requests/{asked.request_id}')}"]
    showing = [flag for flag in _showing(options) if flag not in prepare["args"]]
    mounts = [mount for mount in prepare["volumeMounts"] if mount != control_plane.mount()]
    return prepare | {
        "args": [*prepare["args"], *fetched, f"--request={_REQUEST_FILE}", *showing],
        "volumeMounts": [*mounts, {"name": "request", "mountPath": _REQUEST_FOLDER}, control_plane.mount()],
    }


def _upload(asked: Job, prepare: Manifest, options: Options) -> Manifest:
    """Return the container that uploads the result folder; raises InvalidInput where its target is unknown."""
    to = control_plane.address(options, f"results/{asked.result_id}")
    return {
        "name": UPLOAD,
        "image": prepare["image"],
        "command": [*COMMAND, "upload"],
        "args": [_MADE, f"--to={to}", *_showing(options)],
        "resources": prepare["resources"],
        "securityContext": SECURE,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": "made", "mountPath": _MADE, "readOnly": True},
            {"name": "upload-tmp", "mountPath": "/tmp"},  # noqa: S108 - a mount in a pod
            control_plane.mount(),
        ],
    }


def _showing(options: Options) -> list[str]:
    """Return the flags by which the pod identifies itself."""
    authority = control_plane.authority_file(options)
    return [
        f"--token-file={control_plane.token_file()}",
        *([f"--certificate-authority={authority}"] if authority else []),
    ]
