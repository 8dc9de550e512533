"""Which messages are refused before they are parsed, by how many integers their typed contents have."""

import pytest

from serving_runtime import proto
from serving_runtime.common.errors import InvalidArgument
from serving_runtime.protocol.grpc.codec import part_limit

MOST = 25_000_000
REFUSAL = f"typed contents have more than {MOST} integers; send raw_input_contents"


def varint(number: int) -> bytes:
    found = bytearray()
    while number >= 128:
        found.append(number % 128 + 128)
        number //= 128
    return bytes([*found, number])


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def request(*contents: bytes) -> memoryview:
    """Return a ModelInferRequest of inputs with these typed contents."""
    return memoryview(b"".join(field(5, field(5, content)) for content in contents))


def test_integers_up_to_the_limit_are_parsed_and_one_more_is_refused() -> None:
    packed = field(2, b"\x01" * MOST)
    part_limit.check("ModelInferRequest", request(packed))
    with pytest.raises(InvalidArgument, match=REFUSAL):
        part_limit.check("ModelInferRequest", request(packed, field(2, b"\x01" * 100_000)))


@pytest.mark.parametrize("before", [b"", field(6, b""), field(6, b"") * 100], ids=["alone", "after", "after much"])
def test_many_tensors_are_counted_together(before: bytes) -> None:
    with pytest.raises(InvalidArgument, match=REFUSAL):
        part_limit.check("ModelInferRequest", request(*[before + field(5, b"\x01" * 1_900_000)] * 14))


def test_an_integer_of_many_bytes_is_one_and_other_numbers_are_none() -> None:
    message = proto.ModelInferRequest()
    message.inputs.add(datatype="INT64").contents.int64_contents.extend([-1] * 3_000_000)
    message.inputs.add(datatype="FP32").contents.fp32_contents.extend([0.5] * 100_000)
    part_limit.check("ModelInferRequest", memoryview(message.SerializeToString()))
    part_limit.check("ModelInferRequest", request(field(6, b"\x00" * 2 * MOST)))
