"""The command `build-plan`: an ONNX model into a TensorRT plan, on the GPU or slice that is to run it; exit 0, or 2.

It prints one line of JSON that says what the plan was built on: a plan serves that kind of GPU or slice only.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from serving_runtime.devices import nvml
from serving_runtime.devices.gpu import CUDA_VISIBLE
from serving_runtime.errors import ModelError, ServingError
from serving_runtime.planning.shapes import profile_of
from serving_runtime.server.options import Parser

SCHEMA = "fairlead.build-plan/v1"


def main(arguments: Sequence[str]) -> int:
    """Run `build-plan`; returns the exit code."""
    found = _parser().parse_args(arguments[1:])
    try:
        answer = _built(found)
    except (ServingError, OSError) as error:
        sys.stdout.write(json.dumps({"schema": SCHEMA, "error": str(error)}) + "\n")
        return 2
    sys.stdout.write(json.dumps(answer) + "\n")
    return 0


def _parser() -> Parser:
    parser = Parser(prog="fairlead-serve build-plan", description=(__doc__ or "").split("\n", 1)[0], allow_abbrev=False)
    parser.add_argument("model", type=Path, metavar="MODEL.onnx")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="the plan, as in 1/model.plan")
    parser.add_argument("--precision", choices=("fp32", "fp16", "int8"), default="fp32", help="(fp32)")
    parser.add_argument("--calibration", type=Path, metavar="FILE.npz", help="typical rows for each input; for int8")
    parser.add_argument(
        "--profile",
        action="append",
        type=profile_of,
        default=[],
        metavar="INPUT:MIN:USUAL:MAX[,...]",
        help="shapes of an optimization profile, as in x:1x128:8x128:32x128; may be given several times",
    )
    parser.add_argument("--timing-cache", type=Path, metavar="FILE", help="measured kernels, for the next build")
    parser.add_argument("--workspace-bytes", type=int, default=1 << 30, metavar="N", help="(1 GiB)")
    parser.add_argument("--optimization-level", type=int, choices=range(6), default=3, help="(3)")
    return parser


def _built(found: argparse.Namespace) -> dict[str, object]:
    if not found.model.is_file():
        raise ModelError(f"there is no {found.model}")
    there = nvml.mine()
    if not there.gpus:
        raise ModelError(f"a plan is built on the GPU that is to run it, and this process has none: {there.why_none}")
    gpu = there.gpus[0]
    os.environ[CUDA_VISIBLE] = gpu.uuid
    try:
        from serving_runtime.planning import building, precision  # noqa: PLC0415 - libraries that are extras
    except ModuleNotFoundError as error:
        raise ModelError(f"build-plan needs {error.name}; run: pip install 'fairlead[tensorrt,build-plan]'") from error
    order = building.Order(found.profile, found.workspace_bytes, found.optimization_level, found.timing_cache)
    with tempfile.TemporaryDirectory(prefix="fairlead-plan-") as folder:
        typed = Path(folder) / "model.onnx"
        precision.with_precision(found.model, found.precision, found.calibration, typed)
        plan = building.build(typed, order)
    found.output.parent.mkdir(parents=True, exist_ok=True)
    partial = found.output.with_name(f".{found.output.name}.partial")
    partial.write_bytes(plan)
    partial.replace(found.output)
    built_on = {"gpu": gpu.name, "mig_profile": gpu.profile, "compute_capability": gpu.capability}
    tensorrt = building.VERSION
    return {"schema": SCHEMA, "plan": str(found.output), "bytes": len(plan), "tensorrt": tensorrt, **built_on}
