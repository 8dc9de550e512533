"""Pod of a custom predictor: the author's container, and the runtime's image as a proxy in front of it. Pure.

    gateway -- 8000 --> runtime (`serving_runtime proxy`) -- 127.0.0.1:port --> predictor (the author's image)
                        8002: the counters of a model's runtime

The proxy counts requests as a model's runtime does, so the gate, pages and autoscalers read the same metrics. Its
readiness asks the container. On the way out the container outlives the proxy, which answers what it has accepted.
"""

from integrations.clusters.base import Desired, DesiredPredictor, DesiredRevision, permitted
from integrations.clusters.flags import CLOSED, log_variables, trace_variables
from integrations.clusters.kubernetes.manifests.names import HTTP_PORT, METRICS_PORT, Manifest, quantity
from integrations.clusters.kubernetes.manifests.workloads import claims
from integrations.clusters.kubernetes.manifests.workloads.pods import (
    COMMAND,
    PORTS,
    RUNTIME,
    limited,
    metadata,
    scheduling,
)
from integrations.clusters.kubernetes.manifests.workloads.secure import (
    SECURE,
    env_entries,
    probes,
    requested,
    secure_pod,
    startup,
)
from integrations.clusters.kubernetes.manifests.workloads.volumes import TMP_GIB, empty
from integrations.clusters.kubernetes.options import LogFormat, Options

PREDICTOR = "predictor"
"""Name of the author's container."""
_PORT = "predictor"
_PROXY_CPU, _PROXY_BYTES = 0.1, 512 << 20
_TMP = "proxy-tmp"


def custom_template(
    desired: Desired, revision: DesiredRevision, custom: DesiredPredictor, options: Options
) -> Manifest:
    """Return the pod template of a revision's Deployment; raises InvalidInput for a GPU that cannot be shared."""
    claims.refuse_shared(revision.resources, options)
    return {
        "metadata": metadata(desired, revision, options, PREDICTOR, RUNTIME),
        "spec": {
            **secure_pod(desired, options),
            **scheduling(desired, revision, options),
            "containers": [
                _predictor(revision, custom, options),
                _proxy(desired, revision, custom, options),
            ],
            "volumes": [
                empty("tmp", TMP_GIB),
                empty(_TMP, TMP_GIB),
                {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": str(options.shared_memory_bytes)}},
            ],
        },
    }


def _predictor(revision: DesiredRevision, custom: DesiredPredictor, options: Options) -> Manifest:
    own = {"MODEL_NAME": revision.model_name, "PORT": str(custom.port)}
    env = {**own, **permitted(revision.env, is_code=True), "FAIRLEAD_REVISION": revision.name, **CLOSED}
    container: Manifest = {
        "name": PREDICTOR,
        "image": custom.image,
        "env": env_entries(env, permitted(revision.secret_env, is_code=True)),
        "ports": [{"name": _PORT, "containerPort": custom.port, "protocol": "TCP"}],
        "resources": limited(requested(revision.resources, options), revision, options),
        "securityContext": SECURE,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        **_probes(_PORT, options),
        # Until the proxy has answered what it accepted.
        "lifecycle": {"preStop": {"sleep": {"seconds": options.pre_stop_s + options.drain_s}}},
        "volumeMounts": [
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - a mount in a pod
            {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108 - a mount in a pod
        ],
    }
    if custom.args:
        container["args"] = list(custom.args)
    return {**container, "command": list(custom.command)} if custom.command else container


def _probes(port: str, options: Options) -> Manifest:
    """Return the probes of a container that lives while it takes connections; the proxy asks whether it is ready."""
    return {"startupProbe": {**_connects(port), **startup(options)}, "livenessProbe": _lives(port)}


def _lives(port: str) -> Manifest:
    return {**_connects(port), "periodSeconds": 10, "failureThreshold": 6}


def _connects(port: str) -> Manifest:
    return {"tcpSocket": {"port": port}, "timeoutSeconds": 5}


def _proxy(desired: Desired, revision: DesiredRevision, custom: DesiredPredictor, options: Options) -> Manifest:
    env = {
        "FAIRLEAD_REVISION": revision.name,
        **CLOSED,
        **log_variables(is_json=options.telemetry.logs is LogFormat.JSON),
        **trace_variables(options.telemetry.otlp, desired.namespace, revision),
    }
    resources = {"cpu": quantity(_PROXY_CPU), "memory": str(_PROXY_BYTES)}
    return {
        "name": RUNTIME,
        "image": options.runtime_image,
        "command": [*COMMAND, "proxy"],
        "args": [
            f"--target_port={custom.port}",
            f"--model_name={revision.model_name}",
            f"--protocol={custom.protocol}",
            f"--http_port={HTTP_PORT}",
            f"--metrics_port={METRICS_PORT}",
            f"--exit-timeout-secs={options.drain_s}",
            *([f"--health_path={custom.ready_path}"] if custom.ready_path else []),
            *([f"--max-concurrent-requests={most}"] if (most := revision.max_concurrent_requests) else []),
        ],
        "env": env_entries(env, {}),
        "ports": [*PORTS],
        "resources": {"requests": resources, "limits": {"memory": str(_PROXY_BYTES)}},
        "securityContext": SECURE,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        **probes(options),
        "livenessProbe": _lives("http"),  # its own: the container's is beside it
        "lifecycle": {"preStop": {"sleep": {"seconds": options.pre_stop_s}}},
        "volumeMounts": [{"name": _TMP, "mountPath": "/tmp"}],  # noqa: S108 - a mount in a pod
    }
