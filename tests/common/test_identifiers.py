from collections.abc import Callable

import pytest

from common import identifiers
from common.errors import InvalidInput


@pytest.mark.parametrize(
    ("check", "name"),
    [
        (identifiers.check_dns_label, "digits"),
        (identifiers.check_dns_label, "a"),
        (identifiers.check_dns_label, "0-9"),
        (identifiers.check_dns_label, "a" * 63),
        (identifiers.check_model_name, "Digits.v2_final-1"),
        (identifiers.check_model_name, "a" * 128),
        (identifiers.check_alias, "champion"),
        (identifiers.check_alias, "v2"),
    ],
)
def test_accepts(check: Callable[[str], str], name: str) -> None:
    assert check(name) == name


@pytest.mark.parametrize(
    ("check", "name"),
    [
        pytest.param(identifiers.check_dns_label, "", id="label: empty"),
        pytest.param(identifiers.check_dns_label, "Digits", id="label: upper case"),
        pytest.param(identifiers.check_dns_label, "-digits", id="label: hyphen first"),
        pytest.param(identifiers.check_dns_label, "digits-", id="label: hyphen last"),
        pytest.param(identifiers.check_dns_label, "a" * 64, id="label: 64 characters"),
        pytest.param(identifiers.check_dns_label, "a.b", id="label: a dot"),
        pytest.param(identifiers.check_dns_label, "digits\n", id="label: a line end at the end"),
        pytest.param(identifiers.check_dns_label, "é", id="label: not ASCII"),
        pytest.param(identifiers.check_model_name, "", id="model: empty"),
        pytest.param(identifiers.check_model_name, "../x", id="model: a path"),
        pytest.param(identifiers.check_model_name, ".hidden", id="model: a dot first"),
        pytest.param(identifiers.check_model_name, "a@b", id="model: the alias sign"),
        pytest.param(identifiers.check_model_name, "a" * 129, id="model: 129 characters"),
        pytest.param(identifiers.check_alias, "2", id="alias: looks like a version"),
        pytest.param(identifiers.check_alias, "a/b", id="alias: a slash"),
        pytest.param(identifiers.check_alias, "a" * 65, id="alias: 65 characters"),
    ],
)
def test_refuses_in_one_sentence_with_the_rule(check: Callable[..., str], name: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        check(name, field="metadata.name")
    assert refusal.value.field == "metadata.name"
    assert refusal.value.message.startswith("metadata.name is ")
    assert "; expected a" in refusal.value.message
    assert len(refusal.value.message) < 300


def test_a_name_of_any_length_gives_a_short_sentence() -> None:
    with pytest.raises(InvalidInput) as refusal:
        identifiers.check_dns_label("a" * 1_000_000)
    assert len(refusal.value.message) < 300
