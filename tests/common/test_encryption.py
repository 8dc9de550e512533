import pytest
from pytest_django.fixtures import Settings

from common.encryption import seal, unseal
from common.errors import Unavailable


def test_what_was_sealed_is_had_back_and_looks_another_each_time() -> None:
    sealed = seal("whsec_ö", purpose="a test")
    assert unseal(sealed, purpose="a test") == "whsec_ö"
    assert seal("whsec_ö", purpose="a test") != sealed


@pytest.mark.parametrize("spoil", ["another purpose", "another key", "a changed byte"])
def test_it_is_had_back_for_its_purpose_with_its_key_only(spoil: str, settings: Settings) -> None:
    sealed = seal("secret", purpose="a test")
    if spoil == "another key":
        settings.SECRET_KEY = "z" * 40
    if spoil == "a changed byte":
        sealed = sealed[:20] + ("A" if sealed[20] != "A" else "B") + sealed[21:]
    with pytest.raises(Unavailable, match="cannot be read with the present FAIRLEAD_SECRET_KEY"):
        unseal(sealed, purpose="another" if spoil == "another purpose" else "a test")
