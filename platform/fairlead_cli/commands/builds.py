"""`fairlead models build`, `models builds`, `models stop-build`: a version built from another."""

import argparse
from typing import Any

from fairlead_cli.client import Json, path
from fairlead_cli.commands.tunings import version_option
from fairlead_cli.context import Call, service_path
from fairlead_cli.errors import EndedBadly
from fairlead_cli.output import render
from fairlead_cli.output.waiting import wait_until

_LOOK_EVERY_S, _SPARE_S = 0.5, 3600.0
_OPTIONS = {
    "target": "target",
    "precision": "precision",
    "profile": "profiles",
    "optimization_level": "optimization_level",
    "accelerator": "accelerator",
    "product": "products",
    "timeout_s": "timeout_s",
}

COLUMNS: render.Columns = {
    "build": "id",
    "version": "version",
    "target": lambda row: row["order"]["target"],
    "precision": lambda row: row["order"]["precision"],
    "on": lambda row: row["order"]["accelerator"] or "CPU",
    "cluster": "cluster",
    "status": "status",
    "at": lambda row: row["progress"].get("stage"),
    "built": "built",
    "reason": "reason",
    "began": "created_at",
    "by": "created_by",
}


def build_arguments(parser: argparse.ArgumentParser) -> None:
    version_option(parser)
    parser.add_argument("--target", choices=("onnx", "tensorrt"), help="runtime of the built model (onnx)")
    parser.add_argument(
        "--precision",
        choices=("fp32", "fp16", "int8"),
        help="precision of weights and arithmetic (fp16); int8 requires calibration.npz in the version's folder",
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--service",
        metavar="[NAMESPACE/]NAME",
        help="builds a plan for the kind of GPU or slice of this service's replicas",
    )
    where.add_argument(
        "--accelerator", metavar="RESOURCE", help="builds a plan for this GPU or slice, such as nvidia.com/mig-1g.10gb"
    )
    parser.add_argument(
        "--product",
        action="append",
        metavar="NAME",
        help="GPU product of the node, by its label nvidia.com/gpu.product (any); may be repeated",
    )
    parser.add_argument(
        "--profile",
        action="append",
        metavar="INPUT:MIN:USUAL:MAX[,...]",
        help="shapes of a plan's optimization profile, such as x:1x128:8x128:32x128; may be repeated",
    )
    parser.add_argument("--optimization-level", type=int, choices=range(6), help="optimization level of a plan (3)")
    parser.add_argument("--timeout-s", type=int, metavar="N", help="time limit of the whole build (3600)")
    parser.add_argument("--no-wait", action="store_true", help="returns without waiting for the end")


def build(call: Call) -> None:
    """Builds a version of an ONNX model in FP16 or calibrated INT8, or as a TensorRT plan."""
    options = call.options
    where = path("models", options.name, "versions", options.version, "builds")
    asked: dict[str, Any] = {
        field: found for name, field in _OPTIONS.items() if (found := getattr(options, name)) is not None
    }
    if options.service:
        asked["service"] = "/".join(service_path(options.service))
    row = call.client.post(where, asked)
    if options.no_wait:
        return call.show(row, COLUMNS)
    ended = _ended(call, f"{where}/{row['id']}", row)
    if ended["status"] != "DONE":
        raise EndedBadly(f"{row['model']} version {row['version']} was not built: {ended['reason']}")
    return call.show(ended, COLUMNS)


def list_builds(call: Call) -> None:
    """Lists the builds of a version, newest first."""
    options = call.options
    call.show_list(call.client.all(path("models", options.name, "versions", options.version, "builds")), COLUMNS)


def stop_arguments(parser: argparse.ArgumentParser) -> None:
    version_option(parser)
    parser.add_argument("id", type=int, metavar="BUILD", help="number of the build")


def stop(call: Call) -> None:
    """Stops an unfinished build."""
    options = call.options
    call.client.delete(path("models", options.name, "versions", options.version, "builds", options.id))
    call.done(f"stopped build {options.id}", stopped=options.id)


def _ended(call: Call, where: str, row: Json) -> Json:
    """Return the ended build; reports its progress meanwhile."""
    reported: list[str] = []

    def look() -> Json:
        seen = call.client.get(where)
        stage = seen["progress"].get("stage")
        if stage and reported[-1:] != [stage]:
            reported.append(stage)
            call.note(render.clean(stage))
        return seen

    return wait_until(
        look,
        lambda seen: seen["status"] != "PENDING",
        timeout_s=row["order"]["timeout_s"] + _SPARE_S,
        every_s=_LOOK_EVERY_S,
        what=f"the end of build {row['id']} of {row['model']} version {row['version']}",
    )
