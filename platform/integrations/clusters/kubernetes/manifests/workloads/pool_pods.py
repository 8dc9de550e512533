"""Pod template of a pool's replica: the runtime, and beside it the fetcher of its models. Pure.

The fetcher is an init container that stays, so that it starts before the runtime and ends after it. It alone has what
the step that fetches a model has elsewhere, and a token with which it reads the pool's catalog (`catalog.py`). The
runtime reads the cache.
"""

from dataclasses import replace

from integrations.clusters.base import Desired, DesiredRevision
from integrations.clusters.flags import log_variables
from integrations.clusters.kubernetes.manifests.jobs import control_plane
from integrations.clusters.kubernetes.manifests.names import Manifest, catalog_name
from integrations.clusters.kubernetes.manifests.workloads import accelerators, claims, volumes
from integrations.clusters.kubernetes.manifests.workloads.model_sources import Source, pool_source
from integrations.clusters.kubernetes.manifests.workloads.pods import (
    COMMAND,
    RUNTIME,
    metadata,
    runtime_container,
    scheduling,
)
from integrations.clusters.kubernetes.manifests.workloads.secure import SECURE, secure_pod
from integrations.clusters.kubernetes.options import LogFormat, Options

FETCHER = "fetcher"
_CACHE, _SOCKET = "/mnt/cache", "/mnt/pool/socket"
_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_TOKEN_S = 3600
_CACHED_MODELS, _FETCHES = 4, 4
"""Numbers of models of the largest size that fit into the cache, and that are fetched at the same time."""
_RESOURCES = {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}}


def pool_template(desired: Desired, revision: DesiredRevision, options: Options) -> Manifest:
    """Return the pod template of a pool's Deployment; raises InvalidInput for a GPU that cannot be shared."""
    claims.refuse_shared(revision.resources, options)
    source = pool_source(options)
    return {
        "metadata": metadata(desired, revision, options, RUNTIME),
        "spec": {
            **secure_pod(desired, options),
            **scheduling(desired, revision, options),
            "initContainers": [_fetcher(desired, revision, source, options)],
            "containers": [_runtime(desired, revision, options)],
            "volumes": [
                volumes.empty("cache", _cache_gib(options) + _FETCHES * volumes.models_gib(options)),
                volumes.empty("pool", 1),
                {"name": "account", "projected": {"sources": [*_account()]}},
                *source.volumes,
                volumes.empty("fetcher-tmp", volumes.TMP_GIB),
                volumes.empty("tmp", volumes.TMP_GIB),
                {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": str(options.shared_memory_bytes)}},
                *([control_plane.volume(options)] if source.calls else []),
            ],
        },
    }


def _account() -> list[Manifest]:
    """Return the sources of the token for the API server, and of that one's certificate authority."""
    return [
        {"serviceAccountToken": {"expirationSeconds": _TOKEN_S, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
    ]


def _cache_gib(options: Options) -> int:
    return max(1, _CACHED_MODELS * options.max_model_bytes >> 30)


def _fetcher(desired: Desired, revision: DesiredRevision, source: Source, options: Options) -> Manifest:
    variables = log_variables(is_json=options.telemetry.logs is LogFormat.JSON)
    environment: Manifest = {"env": [{"name": name, "value": value} for name, value in variables.items()]}
    environment = environment if variables else {}
    environment |= {"envFrom": list(source.env_from)} if source.env_from else {}
    return {
        "name": FETCHER,
        "image": accelerators.image(revision, options),
        "command": [*COMMAND, "pool-fetcher"],
        "args": [
            f"--catalog-config-maps={desired.namespace}/{catalog_name(desired.service)}",
            f"--cache={_CACHE}",
            f"--cache-max-bytes={_cache_gib(options) << 30}",
            f"--fetch-concurrency={_FETCHES}",
            f"--socket={_SOCKET}",
            *source.arguments,
        ],
        **environment,
        "restartPolicy": "Always",  # of an init container: it runs beside the others
        "resources": _RESOURCES,
        "securityContext": SECURE,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            *source.mounts,
            {"name": "account", "mountPath": _ACCOUNT, "readOnly": True},
            {"name": "cache", "mountPath": _CACHE},
            {"name": "pool", "mountPath": _SOCKET.rpartition("/")[0]},
            {"name": "fetcher-tmp", "mountPath": "/tmp"},  # noqa: S108 - a mount in a pod
        ],
    }


def _runtime(desired: Desired, revision: DesiredRevision, options: Options) -> Manifest:
    """Return the runtime of other pods, with the pool's models; nothing of a pool is recorded."""
    made = runtime_container(desired, revision, replace(options, payloads_folder=""))
    budget = [f"--model-memory-budget-bytes={most}"] if (most := revision.pool_memory_bytes) else []
    return {
        **made,
        "args": [f"--model-pool={_SOCKET}", *budget, *made["args"][1:]],
        "volumeMounts": [
            {"name": "cache", "mountPath": _CACHE, "readOnly": True},
            {"name": "pool", "mountPath": _SOCKET.rpartition("/")[0], "readOnly": True},
            *made["volumeMounts"][1:],
        ],
    }
