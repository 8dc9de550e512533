"""Control plane access of a container: address, token and certificate authority. Pure.

The token is the pod's own, for the audience `fairlead` alone; the kubelet replaces it before it expires. Only
containers that fetch or upload get it. The container that uploads a replica's records has another one, which fetches no
model.
"""

from common.errors import InvalidInput
from integrations.clusters.base import AUDIENCE, RECORDS_AUDIENCE
from integrations.clusters.kubernetes.manifests.names import Manifest
from integrations.clusters.kubernetes.options import Options

_VOLUME, _RECORDS_VOLUME, _FOLDER = "control-plane", "records", "/var/run/secrets/fairlead"
_TOKEN, _AUTHORITY = "token", "ca.crt"
_LIFETIME_S = 600  # the shortest that Kubernetes takes


def volume(options: Options) -> Manifest:
    """Return the pod's volume with the token, and the certificate authority where the operator names one."""
    return _volume(_VOLUME, AUDIENCE, options)


def records_volume(options: Options) -> Manifest:
    """Return the same with the token of a container that uploads records."""
    return _volume(_RECORDS_VOLUME, RECORDS_AUDIENCE, options)


def _volume(name: str, audience: str, options: Options) -> Manifest:
    sources: list[Manifest] = [
        {"serviceAccountToken": {"audience": audience, "expirationSeconds": _LIFETIME_S, "path": _TOKEN}}
    ]
    if options.control_plane_ca_config_map:
        items = [{"key": _AUTHORITY, "path": _AUTHORITY}]
        sources.append({"configMap": {"name": options.control_plane_ca_config_map, "items": items}})
    return {"name": name, "projected": {"sources": sources}}


def mount() -> Manifest:
    """Return the mount of a container that fetches or uploads."""
    return {"name": _VOLUME, "mountPath": _FOLDER, "readOnly": True}


def records_mount() -> Manifest:
    """Return the mount of a container that uploads records."""
    return {"name": _RECORDS_VOLUME, "mountPath": _FOLDER, "readOnly": True}


def token_file() -> str:
    """Return the path of the token in such a container, which has to be read for each call."""
    return f"{_FOLDER}/{_TOKEN}"


def authority_file(options: Options) -> str:
    """Return the path of the certificate authority in such a container; empty for the image's own."""
    return f"{_FOLDER}/{_AUTHORITY}" if options.control_plane_ca_config_map else ""


def address(options: Options, path: str) -> str:
    """Return an address under `/api/v1/clusters/<cluster>/workloads/`.

    Raises:
        InvalidInput: the options do not say where pods reach the control plane.
    """
    if not (options.control_plane_url and options.name):
        raise InvalidInput(
            "pods do not know how to reach the control plane: the cluster's option control_plane_url is empty",
            field="control_plane_url",
        )
    return f"{options.control_plane_url.rstrip('/')}/api/v1/clusters/{options.name}/workloads/{path}"
