"""Purposes of paths."""

import pytest

from serving_runtime.proxy.paths import Paths, Purpose

INFERENCE, OTHER, READY, LIVE = Purpose.INFERENCE, Purpose.OTHER, Purpose.READY, Purpose.LIVE


@pytest.mark.parametrize(
    ("request_line", "purpose"),
    [
        ("POST /v2/models/digits/infer", INFERENCE),
        ("POST /v2/models/digits/infer?x=/y", INFERENCE),
        ("POST /v2/models/digits/versions/3/infer", INFERENCE),
        ("POST /v2/models/digits/generate", INFERENCE),
        ("POST /v2/models/digits/generate_stream", INFERENCE),
        ("POST /v2/models/digits/versions/3/infer_stream", INFERENCE),
        ("POST /v1/models/digits:predict", INFERENCE),
        ("POST /v1/models/digits:explain", INFERENCE),
        ("POST /v2/models/%64igits/infer", INFERENCE),
        ("POST /v1/models/digits%3Apredict", INFERENCE),
        ("GET /v2/models/digits/infer", OTHER),
        ("POST /v2/models/other/infer", OTHER),
        ("POST /v2/models/digits/unload", OTHER),
        ("POST /v1/models/digits", OTHER),
        ("POST /v1/models/digits:unload", OTHER),
        ("POST /v1/models/other:predict", OTHER),
        ("GET /v2/models/digits", OTHER),
        ("GET /v2/health/ready", READY),
        ("HEAD /v2/health/ready", READY),
        ("GET /v2/models/digits/ready", READY),
        ("GET /v2/models/digits/versions/1/ready", READY),
        ("GET /v2/models/other/ready", OTHER),
        ("GET /v2/health/live", LIVE),
        ("POST /v2/health/live", OTHER),
        ("GET /metrics", OTHER),
    ],
)
def test_a_path_has_a_purpose(request_line: str, purpose: Purpose) -> None:
    method, target = request_line.encode().split()
    assert Paths("digits").purpose(method, target) is purpose


def test_a_models_name_may_have_colons() -> None:
    assert Paths("a:b").purpose(b"POST", b"/v1/models/a:b:predict") is INFERENCE


@pytest.mark.parametrize(
    ("request_line", "purpose"),
    [
        ("POST /v1/models/digits:explain", Purpose.EXPLANATION),
        ("POST /v1/models/digits:explain?n=1", Purpose.EXPLANATION),
        ("POST /v2/models/digits/explain", Purpose.EXPLANATION),
        ("GET /v2/models/digits/explain", OTHER),
        ("POST /v2/models/digits/versions/1/explain", OTHER),
        ("POST /v2/models/digits/explain/", OTHER),
        ("POST /v2/models/other/explain", OTHER),
        ("POST /v1/models/digits%3Aexplain", INFERENCE),
        ("POST /v1/models/digits:explain/", INFERENCE),
        ("POST /v1/models/digits:predict", INFERENCE),
    ],
)
def test_whole_paths_go_to_an_explainer_and_what_is_escaped_does_not(request_line: str, purpose: Purpose) -> None:
    method, target = request_line.encode().split()
    assert Paths("digits", has_explainer=True).purpose(method, target) is purpose
