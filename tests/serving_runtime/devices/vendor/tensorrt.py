"""A stand-in for TensorRT's Python API: the calls of its reference that the runtime makes.

Its plans are JSON: the tensors, the profiles, and for each output the factor of what is summed over the inputs' last
dimension. `planned` makes one. Only what the documentation promises is answered; anything out of order is an error.
"""

import ctypes
import enum
import json

import numpy as np

__version__ = "11.4.0.106"
CAPABILITY = "9.0"


class TensorIOMode(enum.Enum):
    NONE = 0
    INPUT = 1
    OUTPUT = 2


class DataType(enum.Enum):
    FLOAT = 0
    HALF = 1
    INT8 = 2
    INT32 = 3
    BOOL = 4
    UINT8 = 5
    FP8 = 6
    BF16 = 7
    INT64 = 8


_NUMPY = {"FLOAT": "f4", "HALF": "f2", "INT8": "i1", "INT32": "i4", "INT64": "i8", "BOOL": "?", "BF16": "u2"}


class ILogger:
    class Severity(enum.IntEnum):
        INTERNAL_ERROR = 0
        ERROR = 1
        WARNING = 2
        INFO = 3
        VERBOSE = 4

    def __init__(self):
        pass


def planned(inputs, outputs, profiles=(), *, capability=CAPABILITY, version=__version__, shape_tensors=()):
    """Return a plan: {name: (dtype, shape)} for inputs, {name: (dtype, shape, weights)} for outputs."""
    head = {
        "inputs": inputs,
        "outputs": outputs,
        "profiles": list(profiles),
        "capability": capability,
        "version": version,
        "shape_tensors": list(shape_tensors),
    }
    return json.dumps(head).encode()


class Runtime:
    def __init__(self, logger):
        self._logger = logger

    def deserialize_cuda_engine(self, plan):
        def fail(reason):
            self._logger.log(ILogger.Severity.ERROR, f"IRuntime::deserializeCudaEngine: Error Code 1: {reason}")

        self._logger.log(ILogger.Severity.INFO, "Loaded engine size: 1 MiB")
        try:
            head = json.loads(plan)
        except ValueError:
            return fail("Serialization (Serialization assertion magicTagRead == kPLAN_MAGIC_TAG failed.)")
        if head["version"] != __version__:
            return fail(
                f"The engine plan file is not compatible with this version of TensorRT, "
                f"expecting library version {__version__} got {head['version']}, please rebuild."
            )
        if head["capability"] != CAPABILITY:
            return fail(
                f"The engine plan file is generated on an incompatible device, expecting compute {CAPABILITY} "
                f"got compute {head['capability']}, please rebuild."
            )
        return ICudaEngine(head, self._logger)


class ICudaEngine:
    def __init__(self, head, logger):
        self.head, self.logger = head, logger
        self.tensors = {**head["inputs"], **head["outputs"]}
        self.num_io_tensors = len(self.tensors)
        self.num_optimization_profiles = len(head["profiles"])

    def get_tensor_name(self, index):
        return list(self.tensors)[index]

    def get_tensor_mode(self, name):
        return TensorIOMode.INPUT if name in self.head["inputs"] else TensorIOMode.OUTPUT

    def get_tensor_dtype(self, name):
        return DataType[self.tensors[name][0]]

    def get_tensor_shape(self, name):
        return self.tensors[name][1]

    def is_shape_inference_io(self, name):
        return name in self.head["shape_tensors"]

    def get_tensor_profile_shape(self, name, profile):
        if not self.head["profiles"]:
            return [self.tensors[name][1]] * 3
        return self.head["profiles"][profile][name]

    def create_execution_context(self):
        return IExecutionContext(self)


class IExecutionContext:
    def __init__(self, engine):
        self._engine, self._profile, self._shapes, self._addresses = engine, 0, {}, {}

    def _fail(self, reason):
        self._engine.logger.log(ILogger.Severity.ERROR, f"IExecutionContext: Error Code 3: {reason}")
        return False

    def set_optimization_profile_async(self, profile, stream):
        self._profile, self._shapes = profile, {}
        return profile < max(self._engine.num_optimization_profiles, 1)

    def set_input_shape(self, name, shape):
        smallest, _, largest = self._engine.get_tensor_profile_shape(name, self._profile)
        if not all(low <= dim <= high for low, dim, high in zip(smallest, shape, largest, strict=True)):
            return self._fail(f"{name} does not satisfy the profile")
        self._shapes[name] = tuple(shape)
        return True

    def set_tensor_address(self, name, address):
        self._addresses[name] = address
        return True

    def get_tensor_shape(self, name):
        shape = self._engine.tensors[name][1]
        batch = next(iter(self._shapes.values()))[0]
        return tuple(batch if dim == -1 and place == 0 else dim for place, dim in enumerate(shape))

    def _array(self, name, shape):
        dtype = np.dtype(_NUMPY[self._engine.tensors[name][0]])
        size = int(np.prod(shape)) * dtype.itemsize
        memory = (ctypes.c_char * size).from_address(self._addresses[name])
        return np.frombuffer(memory, dtype).reshape(shape)

    def execute_async_v3(self, stream):
        if set(self._addresses) != set(self._engine.tensors):
            return self._fail("not all tensors have an address")
        given = [self._array(name, self._shapes[name]) for name in self._engine.head["inputs"]]
        for name, (_, _, weights) in self._engine.head["outputs"].items():
            found = self._array(name, self.get_tensor_shape(name))
            found[...] = sum(one.astype("f8") for one in given) @ np.array(weights)
        return True


class NetworkDefinitionCreationFlag(enum.IntEnum):
    STRONGLY_TYPED = 1


class MemoryPoolType(enum.Enum):
    WORKSPACE = 0


class _Profile:
    def __init__(self):
        self.shapes = {}

    def set_shape(self, name, smallest, usual, largest):
        self.shapes[name] = (smallest, usual, largest)


class _Cache:
    def __init__(self, content):
        self._content = content

    def serialize(self):
        return self._content or b"timings"


class _Config:
    def __init__(self):
        self.profiles, self.limits, self.builder_optimization_level = [], {}, 3

    def set_memory_pool_limit(self, pool, size):
        self.limits[pool] = size

    def add_optimization_profile(self, profile):
        self.profiles.append(profile)

    def create_timing_cache(self, content):
        return _Cache(content)

    def set_timing_cache(self, cache, ignore_mismatch):
        self._cache = cache

    def get_timing_cache(self):
        return self._cache


class _Network:
    pass


class OnnxParser:
    """Takes models whose only weights are one matrix, in any precision."""

    def __init__(self, network, logger):
        self._network, self._errors = network, []

    num_errors = property(lambda self: len(self._errors))

    def get_error(self, index):
        return self._errors[index]

    def parse_from_file(self, path):
        import onnx  # noqa: PLC0415

        graph = onnx.load(path).graph
        if any(node.op_type == "NonZero" for node in graph.node):
            self._errors.append("In node 0: UNSUPPORTED_NODE: no importer for NonZero")
            return False
        self._network.graph = graph
        return True


class Builder:
    def __init__(self, logger):
        self._logger = logger

    def create_network(self, flags):
        assert flags == 1 << NetworkDefinitionCreationFlag.STRONGLY_TYPED
        return _Network()

    def create_builder_config(self):
        return _Config()

    def create_optimization_profile(self):
        return _Profile()

    def build_serialized_network(self, network, config):
        graph = network.graph
        if not config.profiles:
            self._logger.log(
                ILogger.Severity.ERROR,
                "Error Code 4: Network has dynamic or shape inputs, but no optimization profile has been defined.",
            )
            return None
        given = {one.name: one.type.tensor_type.elem_type for one in graph.input}
        assert set(given.values()) == {1}, "inputs keep their datatype"
        width = config.profiles[0].shapes[graph.input[0].name][0][-1]
        return planned(
            dict.fromkeys(given, ("FLOAT", (-1, width))),
            {one.name: ("FLOAT", (-1, 1), [[1.0]] * width) for one in graph.output},
            [profile.shapes for profile in config.profiles],
        )
