"""Which services a search by words finds, and that what it looks through follows the service."""

from collections.abc import Callable

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone
from rest_framework.test import APIClient

from accounts.domain.scopes import Scope
from deployments.models import InferenceService
from deployments.reconcile.service_change import changing
from deployments.selectors import service_search
from tests import scenes


def found(words: str) -> list[str]:
    return [str(row) for row in InferenceService.objects.filter(service_search(words.split())).order_by("name")]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("words", "names"),
    [
        pytest.param("ank", ["default/ranker"], id="a part of the name"),
        pytest.param("RANK", ["default/ranker"], id="in any case"),
        pytest.param("default/r", ["default/ranker"], id="namespace and name"),
        pytest.param("digits", ["default/ranker", "default/sorter"], id="the model"),
        pytest.param("sort git", ["default/sorter"], id="each word somewhere"),
        pytest.param("sort rank", [], id="not all words in one"),
        pytest.param("r_nker", [], id="no wildcard of SQL"),
        pytest.param("%", [], id="nor the other"),
    ],
)
def test_a_service_is_found_by_parts_of_its_names(words: str, names: list[str]) -> None:
    scenes.service("ranker")
    scenes.service("sorter")
    assert found(words) == names


@pytest.mark.django_db
def test_a_service_that_turns_to_another_model_is_found_by_that_one() -> None:
    service = scenes.service("ranker")
    other = scenes.model_version(1, "letters")
    with changing(service.pk, now=timezone.now()) as change:
        change.service.model_version = other
    assert (found("letters"), found("digits")) == (["default/ranker"], [])


@pytest.mark.django_db
def test_what_another_release_left_out_comes_with_the_next_change() -> None:
    service = scenes.service("ranker")
    InferenceService.objects.update(searched="")
    with changing(service.pk, now=timezone.now()):
        pass
    assert found("ranker") == ["default/ranker"]


@pytest.mark.django_db
def test_the_api_takes_the_words(api: Callable[..., APIClient]) -> None:
    scenes.service("ranker")
    scenes.service("sorter")
    results = api(Scope.READ).get("/api/v1/services?search=SORT+digits").json()["results"]
    assert [row["name"] for row in results] == ["sorter"]


@pytest.mark.django_db(transaction=True)
def test_services_from_before_are_found_as_well() -> None:
    scenes.service("ranker")
    executor = MigrationExecutor(connection)
    try:
        executor.migrate([("deployments", "0044_due")])
    finally:
        executor = MigrationExecutor(connection)
        executor.migrate(executor.loader.graph.leaf_nodes())
    assert found("ranker digits") == ["default/ranker"]
