"""What the driver for Kubernetes is given, as golden files have it."""

from pathlib import Path
from typing import Any

import yaml

from integrations.clusters.base import (
    Access,
    Arrangement,
    Autoscaling,
    CompanionKind,
    Desired,
    DesiredCompanion,
    DesiredPredictor,
    DesiredRevision,
    HeaderMatch,
    Logger,
    MatchKind,
    Patch,
    PodFields,
    Resources,
    Rolling,
    Spread,
    Tap,
    behavior_from_json,
)
from integrations.clusters.kubernetes.options import (
    GatewayReference,
    GpuAllocation,
    Keda,
    LogFormat,
    ModelCache,
    ModelSource,
    Options,
    Telemetry,
    WakerReference,
)

GOLDEN = Path(__file__).parents[1] / "clusters" / "kubernetes" / "golden"


def given(case: str) -> tuple[Desired, dict[str, int], Options]:
    read = yaml.safe_load((GOLDEN / f"{case}.in.yaml").read_text())
    desired = {**read["desired"], "revisions": tuple(_revision(each) for each in read["desired"]["revisions"])}
    if "access" in desired:
        desired["access"] = Access(**{kind: tuple(names) for kind, names in desired["access"].items()})
    desired["rolling"] = Rolling(**desired["rolling"]) if "rolling" in desired else None
    options = {**read["options"], "gateway": GatewayReference(**read["options"]["gateway"])}
    if "keda" in options:
        options["keda"] = Keda(**options["keda"])
    if "model_cache" in options:
        options["model_cache"] = ModelCache(**options["model_cache"])
    if "telemetry" in options:
        its = options["telemetry"]
        options["telemetry"] = Telemetry(its["otlp"], LogFormat(its["logs"]))
    if "waker" in options:
        options["waker"] = WakerReference(**options["waker"])
    options["gpu_allocation"] = GpuAllocation(options.get("gpu_allocation", "devicePlugin"))
    options["queue_names"] = tuple(options.get("queue_names", ()))
    options["models_from"] = ModelSource(options.get("models_from", "claim"))
    return Desired(**desired), read["shares"], Options(**options)


def _revision(each: dict[str, Any]) -> DesiredRevision:
    scaling = _autoscaling(**each["autoscaling"]) if "autoscaling" in each else None
    logger = Logger(**each["logger"]) if "logger" in each else None
    match = (HeaderMatch(one["header"], MatchKind(one["kind"]), tuple(one["values"])) for one in each.get("match", ()))
    resources = Resources(**each.get("resources", {}))
    own: dict[str, Any] = {"resources": resources, "autoscaling": scaling, "logger": logger, "match": tuple(match)}
    own["tap"] = Tap(**each["tap"]) if "tap" in each else None
    own["patches"] = tuple(Patch(f"patches[{number}]", **patch) for number, patch in enumerate(each.get("patches", ())))
    if "arrangement" in each:
        own["arrangement"] = Arrangement(each["arrangement"])
    if "pod" in each:
        its = each["pod"]
        spread = tuple(Spread(**one) for one in its.get("spread", ()))
        lists = {name: tuple(its.get(name, ())) for name in ("tolerations", "image_pull_secrets")}
        own["pod"] = PodFields(**{**its, **lists, "spread": spread})
    for kind in (kind.value for kind in CompanionKind if kind in each):
        its = each[kind]
        parts: dict[str, Any] = {"resources": Resources(**its.get("resources", {}))}
        parts["autoscaling"] = Autoscaling(**its["autoscaling"]) if "autoscaling" in its else None
        words = {name: tuple(its.get(name, ())) for name in ("command", "args")}
        own[kind] = DesiredCompanion(**{**its, **parts, **words})
    if "custom" in each:
        its = each["custom"]
        own["custom"] = DesiredPredictor(**{**its, **{name: tuple(its.get(name, ())) for name in ("command", "args")}})
    return DesiredRevision(**{**each, **own})


def _autoscaling(most: int, targets: dict[str, float], behavior: dict[str, Any] | None = None) -> Autoscaling:
    return Autoscaling(most, targets, behavior_from_json(behavior or {}))
