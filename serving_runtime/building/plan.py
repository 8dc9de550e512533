"""TensorRT plan builder, for the GPU or slice on which it runs. Not verified on hardware."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import tensorrt as trt

from serving_runtime.backends.tensorrt.engine import Messages
from serving_runtime.common.errors import ModelError

VERSION: str = trt.__version__

Range = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
"""The smallest, the optimal and the largest shape of an input."""


@dataclass(frozen=True, slots=True)
class Order:
    """Build options.

    Attributes:
        profiles: the shapes of each optimization profile, by input; inputs of fixed shapes need none.
        timing_cache: a file of measured kernels, read if it exists and rewritten; None for no cache.
    """

    profiles: Sequence[Mapping[str, Range]] = ()
    workspace_bytes: int = 1 << 30
    optimization_level: int = 3
    timing_cache: Path | None = None


def build(model: Path, order: Order) -> bytes:
    """Return the plan of an ONNX model; raises ModelError in one sentence."""
    messages = Messages()
    builder = trt.Builder(messages)
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
    parser = trt.OnnxParser(network, messages)
    if not parser.parse_from_file(str(model)):
        reasons = "; ".join(str(parser.get_error(index)) for index in range(parser.num_errors))
        raise ModelError(f"TensorRT {trt.__version__} cannot take the model: {' '.join(reasons.split())[:500]}")
    config = builder.create_builder_config()
    config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, order.workspace_bytes)
    config.builder_optimization_level = order.optimization_level
    for ranges in order.profiles:
        profile = builder.create_optimization_profile()
        for name, (smallest, usual, largest) in ranges.items():
            profile.set_shape(name, smallest, usual, largest)
        config.add_optimization_profile(profile)
    cache = None
    if order.timing_cache is not None:
        known = order.timing_cache.read_bytes() if order.timing_cache.is_file() else b""
        cache = config.create_timing_cache(known)
        config.set_timing_cache(cache, ignore_mismatch=False)
    plan = builder.build_serialized_network(network, config)
    if plan is None:
        raise ModelError(f"TensorRT {trt.__version__} cannot build the plan: {messages.taken()}")
    if order.timing_cache is not None and cache is not None:
        order.timing_cache.write_bytes(bytes(config.get_timing_cache().serialize()))
    return bytes(plan)
