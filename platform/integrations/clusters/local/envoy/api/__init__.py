"""Envoy's protobuf messages for the gateway's configuration, in their own descriptor pool.

With their own pool, other packages with Envoy's messages may be imported too. The classes are made at import from
`generated/descriptors.binpb`, which a test regenerates from the .proto files beside it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from google.protobuf import (
    any_pb2,
    descriptor_pb2,
    descriptor_pool,
    duration_pb2,
    empty_pb2,
    json_format,
    message_factory,
    struct_pb2,
)
from google.protobuf import wrappers_pb2 as wrappers

_DESCRIPTORS = Path(__file__).with_name("generated") / "descriptors.binpb"


def _pool() -> descriptor_pool.DescriptorPool:
    pool = descriptor_pool.DescriptorPool()
    for known in (any_pb2, duration_pb2, empty_pb2, struct_pb2, wrappers):
        pool.AddSerializedFile(known.DESCRIPTOR.serialized_pb)
    for file in descriptor_pb2.FileDescriptorSet.FromString(_DESCRIPTORS.read_bytes()).file:
        pool.AddSerializedFile(file.SerializeToString())
    return pool


_POOL = _pool()
_TYPE_URL = "type.googleapis.com/"


def message(name: str) -> Any:
    """Return the message class of a full name, such as "envoy.config.cluster.v3.Cluster"."""
    return message_factory.GetMessageClass(_POOL.FindMessageTypeByName(name))


DeltaDiscoveryRequest = message("envoy.service.discovery.v3.DeltaDiscoveryRequest")
DeltaDiscoveryResponse = message("envoy.service.discovery.v3.DeltaDiscoveryResponse")
Resource = message("envoy.service.discovery.v3.Resource")


def encoded(resource: Mapping[str, Any]) -> bytes:
    """Return the wire form of a resource in protobuf's JSON with its type at "@type".

    Raises:
        json_format.ParseError: it has a field that the .proto files lack, or one of another type.
    """
    fields = dict(resource)
    kind = message(fields.pop("@type").removeprefix(_TYPE_URL))
    return bytes(json_format.ParseDict(fields, kind(), descriptor_pool=_POOL).SerializeToString(deterministic=True))


def decoded(type_url: str, content: bytes) -> dict[str, Any]:
    """Return the JSON of a resource's wire form, which people read."""
    found = message(type_url.removeprefix(_TYPE_URL)).FromString(content)
    return json_format.MessageToDict(found, preserving_proto_field_name=True, descriptor_pool=_POOL)
