"""Errors of the stores' libraries, by what a caller can do about them."""

import pytest

from serving_runtime.shared.object_storage import SCHEMES, Failure, failure_of, missing_package


class NoCredentialsError(Exception):
    """As botocore calls it."""


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        pytest.param(FileNotFoundError(), Failure.MISSING, id="no object"),
        pytest.param(PermissionError(), Failure.FORBIDDEN, id="no right"),
        pytest.param(NoCredentialsError(), Failure.NO_CREDENTIALS, id="no credentials"),
        pytest.param(OSError(), Failure.UNAVAILABLE, id="anything else"),
    ],
)
def test_an_error_has_a_kind(error: Exception, failure: Failure) -> None:
    assert failure_of(error) is failure


def test_the_libraries_of_both_stores_are_installed() -> None:
    assert [missing_package(scheme) for scheme in SCHEMES] == ["", ""]
