"""What a service file calls its model must be what the version is."""

import pytest

from common.errors import InvalidInput
from deployments.domain.service_file import check_format
from deployments.domain.service_file.model import FORMATS


@pytest.mark.parametrize(
    ("model_format", "platform"), [(name, one) for name, every in FORMATS.items() for one in sorted(every)]
)
def test_a_version_goes_by_its_own_format(model_format: str, platform: str) -> None:
    check_format(model_format, platform, "digits version 3")


@pytest.mark.parametrize("platform", ["", "ensemble", "one-of-somebodys-own"])
def test_what_has_no_format_of_its_own_goes_by_any(platform: str) -> None:
    for model_format in FORMATS:
        check_format(model_format, platform, "digits version 3")


@pytest.mark.parametrize(
    ("model_format", "platform", "sentence"),
    [
        ("onnx", "xgboost", "is 'onnx', but digits version 3 is a model of platform xgboost; write xgboost$"),
        ("xgboost", "onnxruntime_onnx", "is 'xgboost', but .* of platform onnxruntime_onnx; write onnx$"),
        ("sklearn", "fil", "write xgboost or lightgbm$"),
        ("onnx", "tensorflow_savedmodel", "write openvino or tensorflow$"),
    ],
)
def test_a_version_of_another_format_is_refused_with_what_to_write(
    model_format: str, platform: str, sentence: str
) -> None:
    with pytest.raises(InvalidInput, match=sentence) as caught:
        check_format(model_format, platform, "digits version 3")
    assert caught.value.field == "spec.predictor.model.modelFormat.name"
