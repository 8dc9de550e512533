"""Pod fields of a service file's predictor, by the names of KServe and Kubernetes. Pure.

What a cluster allows of them is in its file (`clusters.domain.pods`).
"""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from clusters.domain.pods import PREDICTOR, is_reserved
from common.files.document import Document
from common.files.quantities import CPU_UNITS, parse_quantity
from integrations.clusters.base import PodFields, Resources, Spread, Toleration

CPU_LIMIT = "spec.predictor.model.resources.limits.cpu"
FIELDS = (
    "labels",
    "serviceAccountName",
    "nodeSelector",
    "tolerations",
    "priorityClassName",
    "imagePullSecrets",
    "topologySpreadConstraints",
)
"""The fields of `spec.predictor`; `cpuLimit` is only in the JSON of `pod_json`."""
_ZONES = ("kubernetes.io/hostname", "topology.kubernetes.io/zone", "topology.kubernetes.io/region")
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_KEY = re.compile(r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_UNSATISFIABLE = {"ScheduleAnyway": False, "DoNotSchedule": True}
_MOST = 20
_LONGEST_S = 86_400
_INSTEAD = {
    "labelSelector": "replicas of one revision are spread, which Fairlead selects by itself",
    "matchLabelKeys": "replicas of one revision are spread, which Fairlead selects by itself",
}


def parse_pod(predictor: Document, model: Document) -> PodFields:
    """Return the pod fields of `spec.predictor`, with the model's CPU limit."""
    return PodFields(
        labels=_labels(predictor),
        service_account=_name(predictor, "serviceAccountName"),
        node_selector=_pairs(predictor, "nodeSelector"),
        tolerations=_listed(predictor, "tolerations", _toleration),
        priority_class=_name(predictor, "priorityClassName"),
        image_pull_secrets=_listed(predictor, "imagePullSecrets", _secret),
        spread=_listed(predictor, "topologySpreadConstraints", _spread),
        cpu_limit=_cpu_limit(model),
    )


def check_cpu_limit(model: Document, pod: PodFields, resources: Resources) -> None:
    """Report a CPU limit of a model, or of a container, below the requested CPU."""
    limit, request = pod.cpu_limit, resources.cpu_cores
    if limit is not None and request is not None and limit < request and model.is_sound():
        model.fault("resources.limits.cpu", f"is {limit:g}, less than the requested CPU, which is {request:g}")


def pod_json(pod: PodFields) -> dict[str, Any]:
    """Return it as a service file has it, the CPU limit as `cpuLimit`; empty without any."""
    said: dict[str, Any] = {
        "labels": dict(pod.labels),
        "serviceAccountName": pod.service_account,
        "nodeSelector": dict(pod.node_selector),
        "tolerations": [dict(each) for each in pod.tolerations],
        "priorityClassName": pod.priority_class,
        "imagePullSecrets": [{"name": each} for each in pod.image_pull_secrets],
        "topologySpreadConstraints": [
            {
                "maxSkew": each.max_skew,
                "topologyKey": each.topology_key,
                "whenUnsatisfiable": "DoNotSchedule" if each.required else "ScheduleAnyway",
            }
            for each in pod.spread
        ],
        "cpuLimit": "" if pod.cpu_limit is None else f"{Decimal(str(pod.cpu_limit)):f}",
    }
    return {name: value for name, value in said.items() if value}


def stored_pod(stored: Mapping[str, Any]) -> PodFields:
    """Return the fields from the JSON of `pod_json`."""
    cpu = {"resources": {"limits": {"cpu": stored["cpuLimit"]}}} if "cpuLimit" in stored else {}
    return parse_pod(Document(stored, PREDICTOR), Document(cpu, f"{PREDICTOR}.model"))


def pod_field_of(pod: PodFields) -> str:
    """Return the name of the first field that is set; empty without any."""
    said = pod_json(pod)
    first = next(iter(said), "")
    return CPU_LIMIT if first == "cpuLimit" else f"{PREDICTOR}.{first}" if first else ""


def _labels(predictor: Document) -> dict[str, str]:
    found = _pairs(predictor, "labels")
    for key in found:
        if is_reserved(key.rpartition("/")[0]):
            predictor.fault("labels", f"has {key[:80]!r}, which Fairlead or Kubernetes sets; leave it out")
    return found


def _pairs(document: Document, name: str) -> dict[str, str]:
    value = document.raw(name, {})
    if not isinstance(value, dict) or len(value) > _MOST:
        document.fault(name, f"is no object of at most {_MOST} texts")
        return {}
    for key, each in value.items():
        if (
            not isinstance(key, str)
            or not isinstance(each, str)
            or not _KEY.fullmatch(key)
            or not _VALUE.fullmatch(each)
        ):
            document.fault(name, f"has {str(key)[:60]!r}: {str(each)[:60]!r}, which is no label of Kubernetes")
            return {}
    return dict(value)


def _name(document: Document, field: str) -> str:
    found = document.text(field, default="")
    if document.raw(field, None) is not None and not _NAME.fullmatch(found):
        document.fault(field, f"is {found[:60]!r}, which is no name of a Kubernetes object")
        return ""
    return found


def _listed(predictor: Document, name: str, parse: Any) -> tuple[Any, ...]:
    if predictor.raw(name, None) is None:
        return ()
    found = predictor.each(name, parse)
    if len(found) > _MOST:
        predictor.fault(name, f"has {len(found)} entries; a service may have {_MOST}")
    return found


def _secret(secret: Document) -> str:
    secret.text("name")
    found = _name(secret, "name")
    secret.refuse_unknown()
    return found


def _toleration(entry: Document) -> Toleration:
    key, operator = entry.text("key"), _one_of(entry, "operator", ("Equal", "Exists"), "Equal")
    value, effect = entry.text("value", default=""), _one_of(entry, "effect", ("", *_EFFECTS), "")
    if not _KEY.fullmatch(key):
        entry.fault("key", f"is {key[:60]!r}; expected the key of a taint, since one without a key tolerates all")
    if not _VALUE.fullmatch(value) or (value and operator == "Exists"):
        entry.fault("value", "has to be the value of a taint; with the operator Exists leave it out")
    result: dict[str, str | int] = {"key": key, "operator": operator}
    result |= {name: said for name, said in (("value", value), ("effect", effect)) if said}
    if entry.raw("tolerationSeconds", None) is not None:
        result["tolerationSeconds"] = entry.integer("tolerationSeconds", minimum=0, maximum=_LONGEST_S)
        if effect != "NoExecute":
            entry.fault("tolerationSeconds", "counts only for the effect NoExecute")
    entry.refuse_unknown()
    return result


def _spread(entry: Document) -> Spread:
    result = Spread(
        topology_key=_one_of(entry, "topologyKey", _ZONES, None),
        max_skew=entry.integer("maxSkew", minimum=1, maximum=1000),
        required=_UNSATISFIABLE[_one_of(entry, "whenUnsatisfiable", tuple(_UNSATISFIABLE), "DoNotSchedule")],
    )
    entry.refuse_unknown(_INSTEAD)
    return result


def _one_of(document: Document, name: str, choices: tuple[str, ...], default: str | None) -> str:
    found = document.text(name, default=default)
    if found in choices:
        return found
    document.fault(name, f"is {found[:60]!r}; expected {' or '.join(each for each in choices if each)}")
    return default if default in choices else choices[0]


def _cpu_limit(model: Document) -> float | None:
    limits = (model.optional("resources") or Document({})).optional("limits")
    value = None if limits is None else limits.raw("cpu", None)
    if limits is None or value is None:
        return None
    return limits.attempt(None, lambda: float(parse_quantity(value, CPU_UNITS, limits.path("cpu"), "500m or 2")))
