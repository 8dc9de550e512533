"""Loads model files as a server does, each in a process of its own: `python -I loader.py BACKEND`.

It imports the library once and forks for every path that it reads from standard input, so that a file which ends the
process costs milliseconds. For each it writes a line: how the process ended, or how loading did.
"""

import asyncio
import os
import resource
import signal
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from serving_runtime.backends import registry
from serving_runtime.common.datatypes import BYTES, DATATYPES
from serving_runtime.common.errors import ServingError
from serving_runtime.config.model import BackendOptions
from serving_runtime.engine.loading.settings import LoadSettings
from serving_runtime.engine.memory.process_memory import resident_bytes
from serving_runtime.engine.serving.engine import Engine
from serving_runtime.proto import ModelInferRequest
from serving_runtime.protocol.grpc.services.inference import V2Service
from serving_runtime.protocol.tensors import binary

ONNX = "onnxruntime"
RAN, REFUSED, UNEXPECTED, GREEDY = 0, 10, 11, 12
"""How a process ends that the file has not ended: it ran, was refused, by no error of the runtime, took too much."""

BUDGET_BYTES = 128 << 20
"""That a server has for its models."""

_NOT_THE_MODELS_BYTES = 96 << 20
"""That a process may grow by beside: libraries are first used, and threads begin."""

_CPU_S, _WALL_S = 10, 90
_ADDRESS_SPACE_BYTES = 8 << 30
_LARGEST_INPUT = 1 << 16


def main() -> None:
    backend = sys.argv[1]
    registry.find(backend, None, {})
    out = os.dup(1)
    os.dup2(2, 1)  # libraries write to it
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            os._exit(_try(backend, Path(line.strip())))
        os.write(out, f"{os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}\n".encode())


def _try(backend: str, file: Path) -> int:
    signal.alarm(_WALL_S)
    for kind, most in (
        (resource.RLIMIT_AS, _ADDRESS_SPACE_BYTES),
        (resource.RLIMIT_CPU, _CPU_S),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (most, most))
    try:
        return asyncio.run(_serve(file)) if backend == ONNX else _load(backend, file)
    except (ServingError, MemoryError):
        return REFUSED
    except Exception:
        traceback.print_exc()
        return UNEXPECTED


def _load(backend: str, file: Path) -> int:
    try:
        model: Any = registry.find(backend, None, {}).load(file, BackendOptions({}))
        spec = model.signature.inputs[0]
        for value in (0, 1e30, float("nan")):
            model.run([np.full((2, spec.shape[1]), value, spec.datatype.dtype)])
    except Exception:  # of an estimator too, which the backend passes on
        return REFUSED
    return RAN


async def _serve(file: Path) -> int:
    """Serve `REPOSITORY/NAME/1/model.onnx` and send it a few requests."""
    before = resident_bytes()
    name = file.parents[1].name
    engine = Engine([file.parents[2]], LoadSettings(memory_bytes=BUDGET_BYTES))
    if await engine.load_all():
        return REFUSED
    if _peak_bytes() - before > BUDGET_BYTES + _NOT_THE_MODELS_BYTES:
        return GREEDY
    service = V2Service(engine)
    outcome = REFUSED
    for request in _requests(name, engine.model_metadata(name, "")):
        try:
            await service.model_infer(request)
            outcome = RAN
        except ServingError:  # the model failed
            continue
    return outcome


def _requests(name: str, metadata: Any) -> Iterator[Any]:
    """Yield requests of zeros, of ones, and of the most and the least that the inputs can hold."""
    for choice in range(4):
        request = ModelInferRequest(model_name=name)
        for given in metadata["inputs"]:
            shape = [1 if int(dim) < 0 else int(dim) for dim in given["shape"]]
            if np.prod(shape, dtype=object) > _LARGEST_INPUT:
                return
            datatype = DATATYPES[given["datatype"]]
            request.inputs.add(name=given["name"], datatype=datatype.name, shape=shape)
            array = np.full(shape, _value(datatype, choice), datatype.dtype)
            request.raw_input_contents.append(bytes(binary.encode(array, datatype)))
        yield request


def _value(datatype: Any, choice: int) -> Any:
    if datatype is BYTES:
        return (b"", b"1", b"-9223372036854775808", b"x" * 200)[choice]
    kind = datatype.dtype.kind
    if kind in "iu":
        bounds = np.iinfo(datatype.dtype)
        return (0, 1, bounds.min, bounds.max)[choice]
    return (0, 1, float("nan"), float("inf"))[choice] if kind == "f" else choice % 2


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main()
