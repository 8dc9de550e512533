"""Command `build`: builds FP16, INT8 or a TensorRT plan from an ONNX model's folder; exits with 0, or 2.

A plan is built on the GPU or slice that will run it, and serves that kind of GPU or slice only. It prints as JSON the
result, its source and the device.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from serving_runtime.artifacts.unpack import digest_of_folder
from serving_runtime.building import folders
from serving_runtime.common.errors import ModelError, ServingError
from serving_runtime.devices import nvml
from serving_runtime.devices.gpu import CUDA_VISIBLE, Gpu
from serving_runtime.server.flags.parser import Parser

SCHEMA, PROGRESS_SCHEMA = "fairlead.build/v1", "fairlead.build-progress/v1"
_ONNX, _TENSORRT = "onnx", "tensorrt"


def main(arguments: Sequence[str]) -> int:
    """Run `build`; returns the exit code."""
    found = _parser().parse_args(arguments[1:])
    indent = None if found.json else 2
    try:
        answer = _built(found)
    except (ServingError, OSError) as error:
        sys.stdout.write(json.dumps({"schema": SCHEMA, "error": str(error)}, indent=indent) + "\n")
        return 2
    sys.stdout.write(json.dumps(answer, indent=indent) + "\n")
    return 0


def _parser() -> Parser:
    parser = Parser(prog="fairlead-serve build", description=(__doc__ or "").split("\n", 1)[0], allow_abbrev=False)
    parser.add_argument("model_dir", type=Path, metavar="MODEL_DIR", help="folder of one model in a model repository")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder for the new model")
    parser.add_argument("--target", choices=(_ONNX, _TENSORRT), default=_ONNX, help="runtime of the built model (onnx)")
    parser.add_argument(
        "--precision",
        choices=("fp32", "fp16", "int8"),
        default="fp16",
        help="precision of weights and arithmetic (fp16)",
    )
    parser.add_argument(
        "--calibration",
        type=Path,
        metavar="FILE.npz",
        help=f"representative rows of each input, for int8 (MODEL_DIR/{folders.CALIBRATION})",
    )
    parser.add_argument(
        "--json", action="store_true", help="prints one line of JSON (default: indented); progress on stderr"
    )
    plan = parser.add_argument_group("TensorRT plan")
    plan.add_argument(
        "--profile",
        action="append",
        type=profile_of,
        default=[],
        metavar="INPUT:MIN:USUAL:MAX[,...]",
        help="shapes of an optimization profile, such as x:1x128:8x128:32x128; may be repeated",
    )
    plan.add_argument(
        "--timing-caches",
        type=Path,
        metavar="DIR",
        help="cache of measured kernels, by TensorRT and kind of GPU or slice",
    )
    plan.add_argument(
        "--workspace-bytes", type=int, default=1 << 30, metavar="N", help="workspace of the builder (1 GiB)"
    )
    plan.add_argument("--optimization-level", type=int, choices=range(6), default=3, help="optimization level (3)")
    return parser


def _built(found: argparse.Namespace) -> dict[str, object]:
    if found.target == _ONNX and found.precision == "fp32":
        raise ModelError("an ONNX model is FP32 as it is; choose --precision fp16 or int8, or --target tensorrt")
    model: Path = found.model_dir
    gpu = _gpu() if found.target == _TENSORRT else None
    source = folders.onnx_in(model)
    try:
        from serving_runtime.building import precision  # noqa: PLC0415 - libraries that are extras
    except ModuleNotFoundError as error:
        raise ModelError(f"build needs {error.name}; run: pip install 'fairlead[model-build]'") from error
    with tempfile.TemporaryDirectory(prefix="fairlead-build-") as folder:
        file = Path(folder) / "model.onnx"
        _say(found, f"writing {found.precision}")
        precision.with_precision(
            source,
            found.precision,
            found.calibration or folders.calibration_in(model),
            file,
            lambda done, count: _say(found, f"calibrating: {done} of {count} rows"),
        )
        made = {"target": found.target, "precision": found.precision, "onnxruntime": precision.VERSION}
        if gpu is not None:
            _say(found, "building the plan")
            file, more = _plan(found, file, gpu)
            made |= more
        folders.lay_out(model, file, found.output)
    digest = digest_of_folder(found.output)
    size_bytes = sum(path.stat().st_size for path in found.output.rglob("*") if path.is_file())
    return {"schema": SCHEMA, "digest": digest, "bytes": size_bytes, "made": made}


def _gpu() -> Gpu:
    there = nvml.mine()
    if not there.gpus:
        raise ModelError(f"a plan is built on the GPU that is to run it, and this process has none: {there.why_none}")
    os.environ[CUDA_VISIBLE] = there.gpus[0].uuid
    return there.gpus[0]


def _plan(found: argparse.Namespace, typed: Path, gpu: Gpu) -> tuple[Path, dict[str, str]]:
    try:
        from serving_runtime.building import plan  # noqa: PLC0415 - libraries that are extras
    except ModuleNotFoundError as error:
        raise ModelError(f"build needs {error.name}; run: pip install 'fairlead[tensorrt,model-build]'") from error
    on = {"gpu": gpu.name, "mig_profile": gpu.profile, "compute_capability": gpu.capability, "tensorrt": plan.VERSION}
    order = plan.Order(found.profile, found.workspace_bytes, found.optimization_level, _timing_cache(found, on))
    file = typed.with_name("model.plan")
    file.write_bytes(plan.build(typed, order))
    return file, {name: value for name, value in on.items() if value}


def _timing_cache(found: argparse.Namespace, on: dict[str, Any]) -> Path | None:
    """Return the timing cache file of this TensorRT on this kind of GPU or slice."""
    if found.timing_caches is None:
        return None
    found.timing_caches.mkdir(parents=True, exist_ok=True)
    words = (on["gpu"], on["mig_profile"] or "whole", on["tensorrt"])
    name = "-".join("".join(sign if sign.isalnum() or sign in "._" else "_" for sign in word) for word in words)
    path: Path = found.timing_caches / f"{name}.timings"
    return path


def _say(found: argparse.Namespace, stage: str) -> None:
    line = json.dumps({"schema": PROGRESS_SCHEMA, "stage": stage}) if found.json else f"fairlead-serve build: {stage}"
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


Shape = tuple[int, ...]


def profile_of(text: str) -> dict[str, tuple[Shape, Shape, Shape]]:
    """Return smallest, usual and largest shape by input of `x:1x4:8x4:32x4,y:...`; raises ArgumentTypeError."""
    found = {}
    for part in text.split(","):
        name, *shapes = part.rsplit(":", 3)
        parsed = [tuple(int(dim) if dim.isdecimal() else 0 for dim in shape.split("x")) for shape in shapes]
        if not name or len(parsed) != 3 or any(0 in shape for shape in parsed):
            raise argparse.ArgumentTypeError(f"'{part}' is not INPUT:MIN:USUAL:MAX, as in x:1x128:8x128:32x128")
        smallest, usual, largest = parsed
        ranks = len({len(shape) for shape in parsed}) == 1
        if not ranks or any(not low <= mid <= high for low, mid, high in zip(smallest, usual, largest, strict=True)):
            raise argparse.ArgumentTypeError(
                f"'{part}': the shapes must be of one rank, and none smaller than the former"
            )
        found[name] = (smallest, usual, largest)
    return found
