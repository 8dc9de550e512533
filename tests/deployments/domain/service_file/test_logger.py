"""KServe's `logger` of a predictor: read, written back, refused."""

import copy
from dataclasses import replace
from typing import Any

import pytest

from common.errors import InvalidInput
from deployments.domain.service_file import content_of, file_saying, parse_service
from deployments.models import Rollout
from deployments.services import service_apply
from integrations.clusters.base import Logged, Logger
from tests.deployments._support.platform import Platform

URL = "http://message-dumper.default/"
FILE: dict[str, Any] = {
    "apiVersion": "serving.kserve.io/v1beta1",
    "kind": "InferenceService",
    "metadata": {"name": "digits"},
    "spec": {"predictor": {"model": {"modelFormat": {"name": "onnx"}, "storageUri": "models:/digits/1"}}},
}


def saying(logger: object) -> dict[str, Any]:
    document = copy.deepcopy(FILE)
    document["spec"]["predictor"]["logger"] = logger
    return document


@pytest.mark.parametrize(
    ("logger", "expected"),
    [
        pytest.param({"url": URL}, Logger(URL, Logged.ALL), id="requests and answers where it says nothing"),
        pytest.param({"url": URL, "mode": "response"}, Logger(URL, Logged.RESPONSE), id="answers alone"),
    ],
)
def test_a_logger_is_an_address_and_what_it_is_told(logger: dict[str, str], expected: Logger) -> None:
    assert parse_service(saying(logger)).logger == expected
    assert parse_service(FILE).logger is None


@pytest.mark.parametrize(
    ("logger", "field"),
    [
        ({}, "url"),
        ({"url": "message-dumper"}, "url"),
        ({"url": "https://user:secret@host/"}, "url"),
        ({"url": "https://host/?token=secret"}, "url"),
        ({"url": "https://host/ü"}, "url"),
        ({"url": "http://[::1"}, "url"),
        ({"url": URL, "mode": "some"}, "mode"),
        ({"url": URL, "metadataHeaders": ["x"]}, "metadataHeaders"),
    ],
)
def test_a_wrong_logger_is_refused_by_the_name_of_its_field(logger: dict[str, str], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_service(saying(logger))
    assert caught.value.field == f"spec.predictor.logger.{field}"


@pytest.mark.parametrize("logger", [None, Logger(URL, Logged.REQUEST)])
def test_a_file_is_made_to_say_a_revisions_logger(logger: Logger | None) -> None:
    document = saying({"url": "http://other/"})
    content = replace(content_of(parse_service(document)), logger=logger)
    assert parse_service(file_saying(document, parse_service(document), content)).logger == logger


def test_a_logger_is_rolled_out_and_back_with_its_revision(platform: Platform) -> None:
    service = platform.live()
    document = copy.deepcopy(service.document)
    document["spec"]["predictor"]["logger"] = {"url": URL}
    service_apply(document=document, namespace="default", name="digits", actor="alice", now=platform.clock())
    assert Rollout.objects.get().to_revision.logger == {"url": URL, "mode": "all"}
    platform.turn()
    desired = platform.cluster.desired["default", "digits"]
    assert [each.logger for each in desired.revisions] == [None, Logger(URL)]
    platform.promoted()
    platform.back()
    service.refresh_from_db()
    assert "logger" not in service.document["spec"]["predictor"]
