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
