"""Which header opens which group of calls."""

import pytest

from serving_runtime.common.errors import Forbidden
from serving_runtime.protocol.restrictions import GROUPS, Restriction, Restrictions, parse_restriction, twice

pytestmark = pytest.mark.feature("E19")


def test_a_flag_names_groups_and_the_header_that_opens_them() -> None:
    assert parse_restriction("health,model-repository:admin-key=a=b:c") == Restriction(
        ("health", "model-repository"), "admin-key", "a=b:c"
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("health", "not of the form"),
        ("health:key", "not of the form"),
        ("health:=value", "not of the form"),
        ("health:key=", "not of the form"),
        ("health,nonsense:key=value", "'nonsense' is not one of health, metadata"),
        (":key=value", "'' is not one of"),
    ],
)
def test_anything_else_is_refused_without_telling_the_secret(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match="is not") as caught:
        parse_restriction(text)
    assert sentence in str(caught.value)
    assert "value" not in str(caught.value).lower().replace("header=value", "")


def test_a_group_has_one_header() -> None:
    one = parse_restriction("health,logging:a=b")
    assert twice([one]) is None
    assert twice([one, parse_restriction("trace:a=b")]) is None
    assert twice([one, parse_restriction("trace,logging:c=d")]) == "logging"


@pytest.mark.parametrize(
    ("headers", "is_open"),
    [
        ([(b"Admin-Key", b"secret")], True),
        ([(b"other", b"x"), (b"admin-key", b"secret")], True),
        ([(b"admin-key", b"Secret")], False),
        ([(b"admin-key", b"")], False),
        ([(b"other", b"secret")], False),
        ([], False),
    ],
)
def test_a_restricted_group_opens_to_its_header_only(headers: list[tuple[bytes, bytes]], is_open: bool) -> None:
    restrictions = Restrictions([parse_restriction("logging,trace:Admin-Key=secret")])
    assert restrictions.headers == {b"admin-key"}
    for group in GROUPS:
        assert restrictions.restricts(group) is (group in ("logging", "trace"))
        if is_open or not restrictions.restricts(group):
            restrictions.check(group, headers)
        else:
            with pytest.raises(Forbidden, match="expecting header 'admin-key'"):
                restrictions.check(group, headers)


def test_the_header_of_grpc_has_a_prefix() -> None:
    restrictions = Restrictions([parse_restriction("health:key=secret")], "triton-grpc-protocol-")
    restrictions.check("health", [(b"triton-grpc-protocol-key", b"secret")])
    with pytest.raises(Forbidden, match="triton-grpc-protocol-key"):
        restrictions.check("health", [(b"key", b"secret")])
