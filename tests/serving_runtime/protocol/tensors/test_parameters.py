"""Which request parameters there may be, and which headers become some."""

import re

import pytest

from serving_runtime.common.errors import InvalidArgument
from serving_runtime.common.request import InferRequest
from serving_runtime.protocol.tensors import parameters
from serving_runtime.protocol.tensors.parameters import Forwarding, with_headers


@pytest.mark.feature("E16")
def test_headers_with_a_reserved_name_or_a_secret_are_not_forwarded() -> None:
    headers = [
        (b"X-Tenant", b"a"), (b"priority", b"u=1"), (b"triton_x", b"1"), (b"sequence_x", b"1"), (b"headers", b"1"),
        (b"Admin-Key", b"secret"),
    ]  # fmt: skip
    forwarding = Forwarding(re.compile(".*"), frozenset({b"admin-key"}))
    asked = InferRequest("m", "", (), parameters={"own": 1})
    assert with_headers(asked, headers, forwarding).parameters == {"own": 1, "X-Tenant": "a"}


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("timeout", "5", "'timeout' must be an unsigned integer, found '5'"),
        ("timeout", -1, "'timeout' must be an unsigned integer, found -1"),
        ("priority", 1.0, "'priority' must be an unsigned integer, found 1.0"),
        ("sequence_start", "true", "'sequence_start' must be true or false, found 'true'"),
        ("triton_enable_empty_final_response", 1, "must be true or false, found 1"),
    ],
)
def test_what_the_protocol_understands_has_its_type_for_every_model(name: str, value: object, sentence: str) -> None:
    with pytest.raises(InvalidArgument, match=re.escape(sentence)):
        parameters.checked({name: value})
    assert parameters.checked({"timeout": 5, "sequence_id": "a", "sequence_end": True})


@pytest.mark.parametrize("name", ["headers", "triton_x", "sequence_x"])
def test_reserved_names_are_refused(name: str) -> None:
    with pytest.raises(InvalidArgument, match=f"'{name}' has a reserved name"):
        parameters.checked({name: 1})
