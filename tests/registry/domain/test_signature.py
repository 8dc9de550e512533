import pytest

from common.errors import InvalidInput
from registry.domain import signature


def tensor(name: str, datatype: str = "FP32", *shape: int) -> dict[str, object]:
    return {"name": name, "datatype": datatype, "shape": list(shape)}


def model(*inputs: dict[str, object], outputs: tuple[dict[str, object], ...] = ()) -> dict[str, object]:
    return {"inputs": list(inputs), "outputs": list(outputs)}


X = tensor("x", "FP32", -1, 64)
Y = tensor("y", "INT64", -1)


def test_what_is_parsed_is_stored_as_it_was() -> None:
    document = {**model(X, {**Y, "optional": True}, outputs=(Y,)), "max_batch_size": 8}
    assert signature.parse({**document, "platform": "onnxruntime_onnx"}).as_json() == document


@pytest.mark.parametrize(
    ("document", "field"),
    [
        pytest.param({}, "inputs", id="nothing"),
        pytest.param({"inputs": [], "outputs": {}}, "outputs", id="no list"),
        pytest.param({"inputs": [{"name": "x"}], "outputs": []}, "inputs[0]", id="a tensor without shape"),
        pytest.param(model(tensor("x", "FLOAT", 1)), "inputs[0]", id="a datatype of another protocol"),
        pytest.param(model(X, tensor("y", "FP32", -2)), "inputs[1]", id="a size below -1"),
        pytest.param(model({**X, "shape": ["N", 64]}), "inputs[0]", id="a size with a name"),
        pytest.param(model({**X, "shape": [True]}), "inputs[0]", id="a truth value for a size"),
        pytest.param(model(outputs=(Y, Y)), "outputs", id="the same name twice"),
    ],
)
def test_parse_refuses(document: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        signature.parse(document)
    assert refusal.value.field == field
