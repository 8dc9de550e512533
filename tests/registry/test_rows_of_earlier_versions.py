"""How many rows the versions of a model before one take."""

from collections.abc import Callable

import pytest

from registry.domain.version_lifecycle import Status
from registry.models import ModelVersion
from registry.selectors import rows_of_earlier_versions

Register = Callable[..., ModelVersion]


def with_rows(version: ModelVersion, signature: dict[str, object]) -> ModelVersion:
    ModelVersion.objects.filter(pk=version.pk).update(signature=signature)
    return version


@pytest.mark.parametrize("rows", [16, 2])
def test_the_most_of_those_before_that_are_ready(register: Register, rows: int) -> None:
    with_rows(register(content="1"), {"max_batch_size": 4})
    with_rows(register(content="2"), {"max_batch_size": rows})
    with_rows(register(content="3", status=Status.REJECTED), {"max_batch_size": 99})
    with_rows(register(content="4"), {})
    with_rows(register(model="another", content="5"), {"max_batch_size": 99})
    version = register(content="6")
    with_rows(register(content="7"), {"max_batch_size": 99})
    assert rows_of_earlier_versions(version.pk) == max(4, rows)


def test_none_before(register: Register) -> None:
    version = with_rows(register(), {"max_batch_size": 4})
    assert rows_of_earlier_versions(version.pk) == 0
    version.delete()
    assert rows_of_earlier_versions(version.pk) == 0
