"""Names that are proposed for services."""

import pytest

from common.identifiers import check_dns_label
from deployments.domain.service_file.file import LONGEST_NAME
from deployments.web.services.name_suggestion import first_free, names_for


@pytest.mark.parametrize(
    ("model", "name"),
    [
        pytest.param("digits", "digits", id="a name that is a label"),
        pytest.param("ResNet_50.v1.5", "resnet-50-v1-5", id="capitals, dots and underscores"),
        pytest.param("a--b__", "a-b", id="hyphens between letters only"),
        pytest.param("m" * 128, "m" * 54, id="longer than a service's may be"),
    ],
)
def test_a_service_is_called_like_its_model(model: str, name: str) -> None:
    names = names_for(model)
    assert names[0] == name
    assert names[1] == f"{name}-2"
    assert all(len(check_dns_label(each)) <= LONGEST_NAME for each in names)


def test_a_name_that_is_taken_gets_a_number() -> None:
    assert first_free(("a", "a-2", "a-3"), {"a", "a-2"}) == "a-3"
    assert first_free(("a",), {"a"}) == ""
