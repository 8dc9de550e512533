import pytest

from common.errors import InvalidInput
from registry import signature


def tensor(name: str, datatype: str = "FP32", *shape: int) -> dict[str, object]:
    return {"name": name, "datatype": datatype, "shape": list(shape)}


def model(*inputs: dict[str, object], outputs: tuple[dict[str, object], ...] = ()) -> dict[str, object]:
    return {"inputs": list(inputs), "outputs": list(outputs)}


X = tensor("x", "FP32", -1, 64)
Y = tensor("y", "INT64", -1)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(model(X, outputs=(Y,)), model(X, outputs=(Y,)), [], id="the same"),
        pytest.param(model(X), model(), ["input 'x' is missing"], id="an input is gone"),
        pytest.param(model(X), model(X, Y), ["input 'y' is needed but was not before"], id="an input is new"),
        pytest.param(
            model(X),
            model(tensor("x", "FP64", -1, 64)),
            ["input 'x' has datatype FP64, expected FP32"],
            id="an input has another datatype",
        ),
        pytest.param(
            model(X),
            model(tensor("x", "FP32", -1, 32)),
            ["input 'x' has shape [-1,32], expected [-1,64]"],
            id="an input has another size",
        ),
        pytest.param(
            model(X),
            model(tensor("x", "FP32", 1, 64)),
            ["input 'x' has shape [1,64], expected [-1,64]"],
            id="an input takes fewer sizes",
        ),
        pytest.param(model(tensor("x", "FP32", 1, 64)), model(X), [], id="an input takes more sizes"),
        pytest.param(
            model(X),
            model(tensor("x", "FP32", -1, 8, 8)),
            ["input 'x' has shape [-1,8,8], expected [-1,64]"],
            id="an input has another rank",
        ),
        pytest.param(model(outputs=(Y,)), model(outputs=()), ["output 'y' is missing"], id="an output is gone"),
        pytest.param(model(outputs=(Y,)), model(outputs=(Y, X)), [], id="an output is new"),
        pytest.param(
            model(outputs=(Y,)),
            model(outputs=(tensor("y", "INT32", -1),)),
            ["output 'y' has datatype INT32, expected INT64"],
            id="an output has another datatype",
        ),
        pytest.param(
            model(outputs=(tensor("y", "INT64", 1),)),
            model(outputs=(Y,)),
            ["output 'y' has shape [-1], expected [1]"],
            id="an output may have sizes it had not",
        ),
        pytest.param(
            model(outputs=(Y,)), model(outputs=(tensor("y", "INT64", 1),)), [], id="an output has one of its sizes"
        ),
        pytest.param(
            model(X, Y),
            model(Y, X),
            [],
            id="the order does not matter",
        ),
        pytest.param(
            model(X, outputs=(Y,)),
            model(tensor("image", "UINT8", -1, 64), outputs=()),
            ["input 'x' is missing", "input 'image' is needed but was not before", "output 'y' is missing"],
            id="everything that is wrong is told",
        ),
    ],
)
def test_mismatches(old: dict[str, object], new: dict[str, object], expected: list[str]) -> None:
    assert signature.mismatches(old, new) == expected


def test_what_is_parsed_is_stored_as_it_was() -> None:
    document = model(X, outputs=(Y,))
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
