"""Payload taps of pods: always ready, at a share per revision from a ConfigMap of the service. Pure.

    runtime -> files in the volume `spool` -> reports, which alone has the token -> control plane

A changed share replaces no pods: the kubelet updates the ConfigMap in their volumes, within about a minute.
"""

from common.errors import InvalidInput
from integrations.clusters.base import Desired, DesiredRevision, Resources
from integrations.clusters.flags import log_variables
from integrations.clusters.kubernetes.manifests.jobs import control_plane
from integrations.clusters.kubernetes.manifests.names import Manifest, manifest, service_labels, tap_name
from integrations.clusters.kubernetes.manifests.workloads.secure import SECURE
from integrations.clusters.kubernetes.options import LogFormat, Options

REPORTS = "reports"
_VOLUME, _FOLDER, _FILE = "tap", "/etc/fairlead/tap", "share"
_SPOOL_VOLUME, _SPOOL = "spool", "/var/spool/fairlead"
_MAX_PENDING_BYTES = 32 << 20
_MAX_FILE_BYTES = 64 << 20
# One file more than that is being written, and one large request may be its own file: JSON is up to six times as long
# as tensors. A pod that exceeds the limit is evicted.
_MAX_SPOOL = "1Gi"
_REQUESTED = Resources(cpu_cores=0.01, memory_bytes=64 << 20)
_RESOURCES = {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}}
_START = """\
import importlib.util, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
if importlib.util.find_spec("serving_runtime.server.commands") is None:
    print("nothing is recorded: this runtime of an earlier release does not report", file=sys.stderr, flush=True)
    signal.sigwait({signal.SIGTERM})
    sys.exit()
from serving_runtime.__main__ import main
sys.exit(main(sys.argv[1:]))
"""
"""A container that ended would keep its pod from being ready; a runtime of an earlier release lacks the command."""


def is_possible(options: Options) -> bool:
    """Return whether pods can upload their records to the control plane."""
    return bool(options.control_plane_url and options.name and options.payloads_folder)


def requested(options: Options) -> Resources:
    """Return the resource requests of the container that uploads records, of each replica's pod."""
    return _REQUESTED if is_possible(options) else Resources()


def shares(desired: Desired, options: Options) -> list[Manifest]:
    """Return the ConfigMap with the share of each tapped revision; empty where pods cannot be tapped.

    Raises:
        InvalidInput: a tap is desired, and the options do not say where pods reach the control plane.
    """
    wanted = {each.name: f"{each.tap.share_percent / 100}" for each in desired.revisions if each.tap is not None}
    if not is_possible(options):
        if wanted:
            control_plane.address(options, "exchanges")
            raise InvalidInput(f"{desired.service}: tap needs a folder of the control plane", field="payloads_folder")
        return []
    labels = service_labels(desired.service)
    return [manifest("v1", "ConfigMap", desired, tap_name(desired.service), labels, data=wanted)]


def volumes(desired: Desired, revision: DesiredRevision, options: Options) -> list[Manifest]:
    """Return the pod's volumes for it; the share has no file while the revision is not tapped."""
    if not is_possible(options):
        return []
    items = [{"key": revision.name, "path": _FILE}]
    source = {"name": tap_name(desired.service), "items": items, "optional": True}
    return [
        {"name": _VOLUME, "configMap": source},
        control_plane.records_volume(options),
        {"name": _SPOOL_VOLUME, "emptyDir": {"sizeLimit": _MAX_SPOOL}},
    ]


def mounts(options: Options) -> list[Manifest]:
    """Return the runtime's mounts of the share and of its records."""
    if not is_possible(options):
        return []
    return [
        {"name": _VOLUME, "mountPath": _FOLDER, "readOnly": True},
        {"name": _SPOOL_VOLUME, "mountPath": _SPOOL},
    ]


def flags(options: Options) -> list[str]:
    """Return the runtime's flags."""
    if not is_possible(options):
        return []
    return [
        f"--payload-tap=file://{_SPOOL}/",
        f"--payload-tap-share-file={_FOLDER}/{_FILE}",
        f"--payload-tap-max-pending-bytes={_MAX_PENDING_BYTES}",
        f"--payload-tap-max-file-bytes={_MAX_FILE_BYTES}",
    ]


def reports(image: str, options: Options) -> list[Manifest]:
    """Return the container that uploads the runtime's records: it starts before the runtime and ends after it."""
    if not is_possible(options):
        return []
    authority = control_plane.authority_file(options)
    variables = log_variables(is_json=options.telemetry.logs is LogFormat.JSON)
    return [
        {
            "name": REPORTS,
            "image": image,
            "command": ["python", "-I", "-c", _START],
            "args": [
                "report",
                _SPOOL,
                f"--to={control_plane.address(options, 'exchanges')}",
                f"--token-file={control_plane.token_file()}",
                *([f"--certificate-authority={authority}"] if authority else []),
            ],
            **({"env": [{"name": name, "value": value} for name, value in variables.items()]} if variables else {}),
            "restartPolicy": "Always",  # of an init container: it runs beside the others
            "resources": _RESOURCES,
            "securityContext": SECURE,
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "volumeMounts": [control_plane.records_mount(), {"name": _SPOOL_VOLUME, "mountPath": _SPOOL}],
        }
    ]
