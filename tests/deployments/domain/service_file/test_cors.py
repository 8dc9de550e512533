"""Which pages may call a service from a browser, as its file says it and as it is stored."""

from typing import Any

import pytest

from common.errors import InvalidInput
from deployments.domain.service_file import AccessPolicy, check_cors, cors_json, parse_service, refuse_on, stored_cors
from deployments.domain.service_file.values import ServiceSpec
from integrations.clusters.base import Access, Cors


def parsed(cors: Any) -> ServiceSpec:
    """Return the service of a file with `spec.cors`."""
    model = {"modelFormat": {"name": "onnx"}, "storageUri": "models:/digits/1"}
    document = {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "digits"},
        "spec": {"cors": cors, "predictor": {"model": model}},
    }
    return parse_service(document)


@pytest.mark.parametrize(
    ("said", "cors"),
    [
        (None, None),
        ({"origins": ["https://app.example.com"]}, Cors(("https://app.example.com",))),
        ({"origins": ["http://localhost:3000", "http://[::1]:3000"], "maxAge": "1h"}, Cors(
            ("http://localhost:3000", "http://[::1]:3000"), 3600)),
        ({"origins": ["*"], "maxAge": "0s"}, Cors(("*",), 0)),
    ],
)  # fmt: skip
def test_each_form_is_read_and_stored(said: Any, cors: Cors | None) -> None:
    assert parsed(said).cors == cors
    assert stored_cors(cors_json(cors)) == cors


@pytest.mark.parametrize(
    "origin",
    [
        "app.example.com", "https://", "https://app.example.com/", "https://app.example.com/path", "null", "",
        "https://*.example.com", "https://App.example.com", "https://app.example.com:443", "http://a.example:80",
        "https://user@app.example.com", "https://app.example.com?x", "https://app.example.com#", "ftp://a.example",
        "https://app.example.com:port", "https://app.example.com:0", " https://app.example.com", "https://a b.example",
        "https://app.example.com\n", "https://münchen.example", "https://[::1", "chrome-extension://abc", 7, None,
    ],
)  # fmt: skip
def test_an_origin_that_no_browser_sends_is_refused_by_name(origin: Any) -> None:
    with pytest.raises(InvalidInput, match=r"spec\.cors\.origins"):
        parsed({"origins": [origin]})


@pytest.mark.parametrize(
    "said",
    [
        {}, {"origins": []}, {"origins": "https://app.example.com"}, {"origins": ["*", "https://app.example.com"]},
        {"origins": ["https://a.example"], "credentials": True}, {"origins": ["https://a.example"], "maxAge": "25h"},
        ["https://app.example.com"], "*", {"origins": ["https://a.example"] * 101},
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_by_name(said: Any) -> None:
    with pytest.raises(InvalidInput, match=r"spec\.cors"):
        parsed(said)


def test_every_origin_may_call_public_services_only_on_any_cluster() -> None:
    everywhere, named = Cors(("*",)), Cors(("https://app.example.com",))
    with pytest.raises(InvalidInput, match="is not public"):
        check_cors(everywhere, AccessPolicy(Access()))
    check_cors(everywhere, AccessPolicy(None))
    check_cors(named, AccessPolicy(Access(teams=("fraud",))))
    check_cors(None, AccessPolicy(Access()))
    for kind in ("local", "kubernetes"):
        refuse_on(kind, parsed({"origins": ["*"]}))
