"""TensorRT backend: serves plans (Triton: TensorRT backend, platform tensorrt_plan).

A plan declares all its tensors. Each run takes the first of the model's optimization profiles that its shapes fit.
Not verified on hardware.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path

from serving_runtime.backends.parameters import backend_settings, merged
from serving_runtime.backends.tensorrt.engine import Bounds, Context, Engine, read
from serving_runtime.common.datatypes import Array
from serving_runtime.common.errors import BackendError, ModelError
from serving_runtime.config.model import BackendOptions
from serving_runtime.config.signature import Signature
from serving_runtime.config.tensors import VARIABLE


class TensorRtBackend:
    """Opens .plan files."""

    platform = "tensorrt_plan"
    default_filename = "model.plan"
    runs_on_gpus = True

    def __init__(self, settings: Mapping[str, str]) -> None:
        """Take the --backend-config=tensorrt,key=value settings; raises ModelError."""
        self.default_max_batch_size, self._settings = backend_settings("tensorrt", settings, (), 4)

    def load(self, file: Path, options: BackendOptions) -> "TensorRtModel":
        merged("tensorrt", self._settings, options.parameters, ())
        if options.gpu is None:
            raise ModelError("a TensorRT plan runs on a GPU, and this process has none")
        engine = read(file)
        return TensorRtModel(engine, options.gpu, _profiles(engine, options.profiles), options.instance_count)


class TensorRtModel:
    """One engine and its idle contexts, as many as instances."""

    def __init__(self, engine: Engine, gpu: int, profiles: Sequence[int], instances: int) -> None:
        self.signature = Signature(engine.inputs, engine.outputs)
        self.opsets: dict[str, int] = {}
        self._bounds: list[tuple[int, list[Bounds]]] = [(profile, engine.bounds(profile)) for profile in profiles]
        self._engine: Engine | None = engine
        self._gpu = gpu
        try:
            self._idle = deque(Context(engine, gpu) for _ in range(instances))
        except BackendError as error:
            raise ModelError(f"it cannot be run: {error}") from error

    @property
    def max_batch_size(self) -> int:
        """Return the largest first dimension that a profile accepts; 0 where the signature has no variable one."""
        if not self.signature.batchable:
            return 0
        return max(min(largest[0] for _, largest in bounds) for _, bounds in self._bounds)

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        assert self._engine is not None, "a closed model is not run"  # noqa: S101
        try:
            profile = self._profile_for(inputs)
            try:
                context = self._idle.popleft()
            except IndexError:  # more concurrent runs than instances at load time
                context = Context(self._engine, self._gpu)
            try:
                return context.run(inputs, profile)
            finally:
                self._idle.append(context)
        except BackendError as error:
            raise BackendError(f"the model failed: {error}") from error

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()
        self._engine = None

    def _profile_for(self, inputs: Sequence[Array]) -> int:
        shapes = [array.shape for array in inputs]
        for profile, bounds in self._bounds:
            if all(_within(shape, bound) for shape, bound in zip(shapes, bounds, strict=True)):
                return profile
        reasons = [
            f"'{spec.name}' {list(shape)} (profile {profile} takes {list(smallest)} to {list(largest)})"
            for profile, bounds in self._bounds
            for spec, shape, (smallest, largest) in zip(self.signature.inputs, shapes, bounds, strict=True)
            if not _within(shape, (smallest, largest))
        ]
        raise BackendError(f"no optimization profile of the plan takes input {', '.join(reasons)}")


def _within(shape: tuple[int, ...], bounds: Bounds) -> bool:
    smallest, largest = bounds
    return len(shape) == len(smallest) and all(
        low <= dim <= high for low, dim, high in zip(smallest, shape, largest, strict=True)
    )


def _profiles(engine: Engine, asked: Sequence[str]) -> list[int]:
    """Return the numbers of the profiles that instance_group's `profile` lists; by default the first one."""
    count = engine.native.num_optimization_profiles
    dynamic = any(VARIABLE in spec.shape for spec in engine.inputs)
    for name in asked:
        if not (name.isdecimal() and int(name) < count):
            raise ModelError(f"instance_group profile '{name}' is none of the plan's {count}, numbered from 0")
    if dynamic and not count:
        raise ModelError("the plan has variable shapes and no optimization profile; build it with one")
    return [int(name) for name in asked] or [0]
