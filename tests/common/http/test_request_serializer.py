import pytest
from rest_framework import serializers

from common.errors import InvalidInput
from common.http.request_serializer import RequestSerializer


class Wish(RequestSerializer[None]):
    version = serializers.CharField()
    policy = serializers.CharField(required=False)


def test_known_fields_are_taken() -> None:
    wish = Wish(data={"version": "2"})
    assert wish.is_valid()
    assert wish.validated_data == {"version": "2"}


@pytest.mark.parametrize("name", ["polcy", 5], ids=["misspelt", "no text"])
def test_a_field_nobody_knows_is_refused_by_its_name(name: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        Wish(data={"version": "2", name: "x"}).is_valid()
    assert caught.value.message == f"{name} is not a field here; expected version, policy"
    assert caught.value.field == str(name)


def test_what_is_no_object_is_left_to_the_framework() -> None:
    assert not Wish(data=["version"]).is_valid()
