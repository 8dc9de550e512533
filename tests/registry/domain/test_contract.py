"""What would break today's clients, and what merely changes."""

from typing import Any

import pytest

from registry.domain.contract import Comparison, compare
from registry.domain.signature import parse


def tensor(name: str, datatype: str, *shape: int, **more: object) -> dict[str, object]:
    return {"name": name, "datatype": datatype, "shape": list(shape), **more}


def model(*inputs: dict[str, object], outputs: tuple[dict[str, object], ...] = (), **more: object) -> dict[str, Any]:
    return {"inputs": list(inputs), "outputs": list(outputs), **more}


X = tensor("x", "FP32", -1, 64)
Y = tensor("y", "INT64", -1)
OPTIONAL = tensor("mask", "BOOL", -1, optional=True)
NEEDED = tensor("mask", "BOOL", -1)


@pytest.mark.parametrize(
    ("old", "new", "breaks"),
    [
        pytest.param(model(X), model(), ["input 'x' is not taken any more"], id="an input is gone"),
        pytest.param(model(X, OPTIONAL), model(X), ["input 'mask' is not taken any more"], id="an option is gone"),
        pytest.param(
            model(X), model(X, NEEDED), ["input 'mask' is needed, and was not there before"], id="an input is new"
        ),
        pytest.param(
            model(X, OPTIONAL),
            model(X, NEEDED),
            ["input 'mask' is needed, and was optional before"],
            id="an optional input is needed",
        ),
        pytest.param(
            model(X),
            model(tensor("x", "FP64", -1, 64)),
            ["input 'x' takes FP64, clients send FP32"],
            id="an input has another datatype",
        ),
        pytest.param(
            model(X),
            model(tensor("x", "FP32", -1, 32)),
            ["input 'x' takes [-1,32], clients send [-1,64]"],
            id="an input has another size",
        ),
        pytest.param(
            model(X),
            model(tensor("x", "FP32", 1, 64)),
            ["input 'x' takes [1,64], clients send [-1,64]"],
            id="an input takes fewer sizes",
        ),
        pytest.param(
            model(X),
            model(tensor("x", "FP32", -1, 8, 8)),
            ["input 'x' takes [-1,8,8], clients send [-1,64]"],
            id="an input has another rank",
        ),
        pytest.param(
            model(X, max_batch_size=8),
            model(X, max_batch_size=4),
            ["a request may have 4 rows, 8 before"],
            id="a request may have fewer rows",
        ),
        pytest.param(
            model(outputs=(Y,)), model(outputs=()), ["output 'y' is not given any more"], id="an output is gone"
        ),
        pytest.param(
            model(outputs=(Y,)),
            model(outputs=(tensor("y", "INT32", -1),)),
            ["output 'y' is INT32, clients read INT64"],
            id="an output has another datatype",
        ),
        pytest.param(
            model(outputs=(tensor("y", "INT64", 1),)),
            model(outputs=(Y,)),
            ["output 'y' has shape [-1], clients read [1]"],
            id="an output may have sizes it had not",
        ),
        pytest.param(
            model(X, outputs=(Y,)),
            model(tensor("image", "UINT8", -1, 64), outputs=()),
            [
                "input 'x' is not taken any more",
                "input 'image' is needed, and was not there before",
                "output 'y' is not given any more",
            ],
            id="everything that is wrong is told",
        ),
        pytest.param(
            model(X),
            model(tensor("x", "INT8", -1, 32)),
            ["input 'x' takes INT8, clients send FP32", "input 'x' takes [-1,32], clients send [-1,64]"],
            id="also of one tensor",
        ),
    ],
)
def test_what_breaks_clients(old: dict[str, Any], new: dict[str, Any], breaks: list[str]) -> None:
    assert compare(parse(old), parse(new)) == Comparison(breaks=tuple(breaks))


@pytest.mark.parametrize(
    ("old", "new", "notes"),
    [
        pytest.param(model(X, outputs=(Y,)), model(X, outputs=(Y,)), [], id="the same"),
        pytest.param(model(X, Y), model(Y, X), [], id="the order does not matter"),
        pytest.param(model(X), model(X, OPTIONAL), ["input 'mask' is new and may be left out"], id="a new option"),
        pytest.param(model(NEEDED), model(OPTIONAL), ["input 'mask' may be left out"], id="an input became optional"),
        pytest.param(
            model(tensor("x", "FP32", 1, 64)),
            model(X),
            ["input 'x' takes [-1,64], more than [1,64] before"],
            id="an input takes more sizes",
        ),
        pytest.param(
            model(X, max_batch_size=4),
            model(X, max_batch_size=8),
            ["a request may have 8 rows, 4 before"],
            id="a request may have more rows",
        ),
        pytest.param(model(X), model(X, max_batch_size=1), [], id="how many rows there could be is not known"),
        pytest.param(model(outputs=(Y,)), model(outputs=(Y, X)), ["output 'x' is new"], id="an output is new"),
        pytest.param(
            model(outputs=(Y,)),
            model(outputs=(tensor("y", "INT64", 1),)),
            ["output 'y' has shape [1], one of [-1] before"],
            id="an output has one of its sizes",
        ),
    ],
)
def test_what_harms_nobody(old: dict[str, Any], new: dict[str, Any], notes: list[str]) -> None:
    assert compare(parse(old), parse(new)) == Comparison(notes=tuple(notes))
