"""Protobuf messages of the V2 service and of config.pbtxt, built in their own descriptor pool.

protobuf refuses two definitions of one name in one pool ("duplicate symbol"), and every V2 client brings its own
`inference.*`. A private pool lets a client library be imported beside the runtime. Used by config, engine and
protocol.grpc; the classes are made at import from `generated/descriptors.binpb`, which a test regenerates from
the .proto files beside it.
"""

from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_DESCRIPTORS = Path(__file__).with_name("generated") / "descriptors.binpb"


def _pool() -> descriptor_pool.DescriptorPool:
    files = descriptor_pb2.FileDescriptorSet.FromString(_DESCRIPTORS.read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.AddSerializedFile(file.SerializeToString())
    return pool


_POOL = _pool()


def message(name: str) -> Any:
    """Return the message class of a full name, such as "inference.ModelInferRequest"."""
    return message_factory.GetMessageClass(_POOL.FindMessageTypeByName(name))


def request_type(service: str, method: str) -> Any:
    """Return the message class that a method of a service takes; raises KeyError for an unknown method."""
    return message(_POOL.FindServiceByName(service).methods_by_name[method].input_type.full_name)


def takes_stream(service: str, method: str) -> bool:
    """Return whether a method's client streams messages; raises KeyError for an unknown method."""
    streams: bool = _POOL.FindServiceByName(service).methods_by_name[method].client_streaming
    return streams


def files_from(name: str) -> list[bytes]:
    """Return a .proto file's descriptor and those of its imports, serialized; raises KeyError for an unknown file."""
    return _with_imports(_POOL.FindFileByName(name))


def files_with(symbol: str) -> list[bytes]:
    """Return the same of the file that defines a message, enum, service or method; raises KeyError if unknown."""
    try:
        return _with_imports(_POOL.FindFileContainingSymbol(symbol))
    except KeyError:
        service, _, method = symbol.rpartition(".")
        return _with_imports(_POOL.FindServiceByName(service).methods_by_name[method].containing_service.file)


def _with_imports(file: Any) -> list[bytes]:
    found: dict[str, bytes] = {}
    coming = [file]
    while coming:
        next_one = coming.pop()
        if next_one.name not in found:
            found[next_one.name] = next_one.serialized_pb
            coming += next_one.dependencies
    return list(found.values())


ModelConfig = message("inference.ModelConfig")
ModelInferRequest = message("inference.ModelInferRequest")
ModelInferResponse = message("inference.ModelInferResponse")
DATA_TYPES = _POOL.FindEnumTypeByName("inference.DataType")
