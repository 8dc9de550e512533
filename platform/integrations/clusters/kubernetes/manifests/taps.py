"""How pods are tapped: always ready for it, at a share that a ConfigMap of the service has for each revision. Pure.

Pods are never replaced for it: the kubelet brings a changed ConfigMap into their volumes, within about a minute.
"""

from common.errors import InvalidInput
from integrations.clusters.base import Desired, DesiredRevision
from integrations.clusters.kubernetes.manifests import calling
from integrations.clusters.kubernetes.manifests.names import Manifest, manifest, service_labels, tap_name
from integrations.clusters.kubernetes.options import Options

_VOLUME, _FOLDER, _FILE = "tap", "/etc/fairlead/tap", "share"
_MAX_PENDING_BYTES = 32 << 20


def is_possible(options: Options) -> bool:
    """Return whether pods can bring to the control plane what they record."""
    return bool(options.control_plane_url and options.name and options.payloads_folder)


def shares(desired: Desired, options: Options) -> list[Manifest]:
    """Return the ConfigMap with the share of each tapped revision; none where pods cannot be tapped.

    Raises:
        InvalidInput: a tap is wanted, and the options do not say where pods reach the control plane.
    """
    wanted = {each.name: f"{each.tap.share_percent / 100}" for each in desired.revisions if each.tap is not None}
    if not is_possible(options):
        if wanted:
            calling.address(options, "exchanges")
            raise InvalidInput(f"{desired.service}: tap needs a folder of the control plane", field="payloads_folder")
        return []
    labels = service_labels(desired.service)
    return [manifest("v1", "ConfigMap", desired, tap_name(desired.service), labels, data=wanted)]


def volumes(desired: Desired, revision: DesiredRevision, options: Options) -> list[Manifest]:
    """Return the pod's volume with the share; there is no file while the revision is not tapped."""
    if not is_possible(options):
        return []
    items = [{"key": revision.name, "path": _FILE}]
    source = {"name": tap_name(desired.service), "items": items, "optional": True}
    return [{"name": _VOLUME, "configMap": source}]


def mounts(options: Options) -> list[Manifest]:
    """Return the runtime's mount of that volume."""
    return [{"name": _VOLUME, "mountPath": _FOLDER, "readOnly": True}] if is_possible(options) else []


def flags(options: Options) -> list[str]:
    """Return what the runtime is started with."""
    if not is_possible(options):
        return []
    authority = calling.authority_file(options)
    return [
        f"--payload-tap={calling.address(options, 'exchanges')}",
        f"--payload-tap-share-file={_FOLDER}/{_FILE}",
        f"--payload-tap-token-file={calling.token_file()}",
        *([f"--payload-tap-ca-file={authority}"] if authority else []),
        f"--payload-tap-max-pending-bytes={_MAX_PENDING_BYTES}",
    ]
