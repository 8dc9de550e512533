"""What every backend must do: one case per kind of file, made here, for the one suite that asks the same of all."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from serving_runtime.common.datatypes import Array
from tests.serving_runtime import onnx_models

FEATURES = 8
FIXTURES = Path(__file__).parents[1] / "backends" / "fixtures"

Expected = Callable[[Array], list[Array]]


@dataclass(frozen=True)
class Case:
    """One kind of file.

    Attributes:
        library: what must be importable to make the file and to run it.
        make: writes the version's folder for rows of FEATURES numbers; returns what the library itself answers to rows.
        file: in that folder, which the tests damage.
        inputs, outputs: (name, datatype, shape) of the whole model.
        copies: so many times the size of its inputs a run allocates in numpy, at most; what a library does with
            memory of its own is not counted.
    """

    backend: str
    library: str
    make: Callable[[Path], Expected]
    file: str
    inputs: Sequence[tuple[str, str, list[int]]]
    outputs: Sequence[tuple[str, str, list[int]]]
    copies: float = 0.5
    config: str = ""
    gpu: int | None = None


def rows(count: int, datatype: str = "FP32") -> Array:
    """Return the same rows for the same count."""
    return np.random.default_rng(count).normal(size=(count, FEATURES)).astype({"FP32": "f4", "FP64": "f8"}[datatype])


def _table() -> tuple[Array, Array]:
    """Return features and classes 0, 1, 2 that follow from them."""
    given = rows(2000, "FP64")
    return given, (given[:, 0] + given[:, 1] * given[:, 2] > 0).astype(int) + (given[:, 3] > 0.5)


def _onnx(folder: Path) -> Expected:
    onnx_models.mlp(folder / "model.onnx", (FEATURES, 256, 256, 3))
    import onnxruntime  # noqa: PLC0415

    session = onnxruntime.InferenceSession(str(folder / "model.onnx"))
    return lambda given: list(session.run(None, {"x": given}))


def _xgboost(filename: str) -> Callable[[Path], Expected]:
    def make(folder: Path) -> Expected:
        import xgboost  # noqa: PLC0415

        trained = xgboost.XGBClassifier(n_estimators=40, max_depth=6, n_jobs=1).fit(*_table())
        trained.get_booster().save_model(folder / filename)
        return lambda given: [trained.predict_proba(given)]

    return make


def _lightgbm(folder: Path) -> Expected:
    import lightgbm  # noqa: PLC0415

    given, classes = _table()
    options = {"objective": "binary", "verbosity": -1, "num_threads": 1, "num_leaves": 63}
    trained = lightgbm.train(options, lightgbm.Dataset(given, classes > 0), num_boost_round=60)
    trained.save_model(folder / "model.txt")
    return lambda given: [trained.predict(given)[:, None].astype("f4")]


def _openvino_onnx(folder: Path) -> Expected:
    return _onnx(folder)  # ONNX Runtime's answers


def _openvino_ir(folder: Path) -> Expected:
    import openvino  # noqa: PLC0415

    expected = _onnx(folder)
    openvino.save_model(openvino.Core().read_model(folder / "model.onnx"), folder / "model.xml", compress_to_fp16=False)
    (folder / "model.onnx").unlink()
    return expected


def _graphdef(folder: Path) -> Expected:
    (folder / "model.graphdef").write_bytes((FIXTURES / "layers.graphdef").read_bytes())
    weights = np.load(FIXTURES / "layers.npz")
    return lambda given: [_softmax(np.tanh(given @ weights["first"]) @ weights["second"])]


def _softmax(scores: Array) -> Array:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def _torch_layers():
    import torch  # noqa: PLC0415

    class Layers(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = torch.nn.Linear(FEATURES, 4000), torch.nn.Linear(4000, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.softmax(self.second(torch.tanh(self.first(x))), 1)

    torch.manual_seed(5)
    layers = Layers().eval()
    return layers, lambda given: [layers(torch.from_numpy(given)).detach().numpy()]


def _torchscript(folder: Path) -> Expected:
    import torch  # noqa: PLC0415

    layers, expected = _torch_layers()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.jit.save(torch.jit.script(layers), folder / "model.pt")
    return expected


def _torch_export(folder: Path) -> Expected:
    import torch  # noqa: PLC0415

    layers, expected = _torch_layers()
    batch = {"x": {0: torch.export.Dim("batch", min=1)}}
    torch.export.save(
        torch.export.export(layers, (torch.zeros(2, FEATURES),), dynamic_shapes=batch), folder / "model.pt2"
    )
    return expected


def _sklearn(folder: Path) -> Expected:
    import skops.io  # noqa: PLC0415
    from sklearn.ensemble import RandomForestClassifier  # noqa: PLC0415

    trained = RandomForestClassifier(20, max_depth=8, n_jobs=2, random_state=0).fit(*_table())
    skops.io.dump(trained, folder / "model.skops")
    return lambda given: [trained.predict(given)[:, None], trained.predict_proba(given)]


def _tensorrt(folder: Path) -> Expected:
    import tensorrt  # noqa: PLC0415

    weights = np.random.default_rng(3).normal(size=(FEATURES, 3))
    plan = tensorrt.planned(
        {"x": ("FLOAT", (-1, FEATURES))},
        {"y": ("FLOAT", (-1, 3), weights.tolist())},
        [{"x": ((1, FEATURES), (8, FEATURES), (50_000, FEATURES))}],
    )
    (folder / "model.plan").write_bytes(plan)
    return lambda given: [(given.astype("f8") @ weights).astype("f4")]


CASES = {
    "tensorrt": Case(
        "tensorrt",
        "tensorrt",
        _tensorrt,
        "model.plan",
        [("x", "FP32", [-1, FEATURES])],
        [("y", "FP32", [-1, 3])],
        copies=5,  # the stand-in's own
        gpu=0,
    ),
    "onnx": Case(
        "onnxruntime", "onnxruntime", _onnx, "model.onnx", [("x", "FP32", [-1, FEATURES])], [("y", "FP32", [-1, 3])]
    ),
    "openvino onnx": Case(
        "openvino",
        "openvino",
        _openvino_onnx,
        "model.onnx",
        [("x", "FP32", [-1, FEATURES])],
        [("y", "FP32", [-1, 3])],
        config='backend: "openvino"',
    ),
    "openvino ir": Case(
        "openvino", "openvino", _openvino_ir, "model.xml", [("x", "FP32", [-1, FEATURES])], [("y", "FP32", [-1, 3])]
    ),
    "tensorflow graphdef": Case(
        "openvino",
        "openvino",
        _graphdef,
        "model.graphdef",
        [("x", "FP32", [-1, FEATURES])],
        [("Softmax", "FP32", [-1, 3])],
    ),
    "torchscript": Case(
        "pytorch",
        "torch",
        _torchscript,
        "model.pt",
        [("x", "FP32", [-1, FEATURES])],
        [("probabilities", "FP32", [-1, 3])],
        copies=1,
        config=f"""max_batch_size: 8 dynamic_batching {{}}
            input {{ name: "x" data_type: TYPE_FP32 dims: [{FEATURES}] }}
            output {{ name: "probabilities" data_type: TYPE_FP32 dims: [3] }}""",
    ),
    "torch export": Case(
        "pytorch",
        "torch",
        _torch_export,
        "model.pt2",
        [("x", "FP32", [-1, FEATURES])],
        [("softmax", "FP32", [-1, 3])],
    ),
    "xgboost json": Case(
        "xgboost",
        "xgboost",
        _xgboost("xgboost.json"),
        "xgboost.json",
        [("input__0", "FP32", [-1, FEATURES])],
        [("output__0", "FP32", [-1, 3])],
    ),
    "xgboost ubj": Case(
        "xgboost",
        "xgboost",
        _xgboost("xgboost.ubj"),
        "xgboost.ubj",
        [("input__0", "FP32", [-1, FEATURES])],
        [("output__0", "FP32", [-1, 3])],
    ),
    "lightgbm": Case(
        "lightgbm",
        "lightgbm",
        _lightgbm,
        "model.txt",
        [("input__0", "FP32", [-1, FEATURES])],
        [("output__0", "FP32", [-1, 1])],
    ),
    "sklearn": Case(
        "sklearn",
        "skops",
        _sklearn,
        "model.skops",
        [("input__0", "FP64", [-1, FEATURES])],
        [("predict", "INT64", [-1, 1]), ("predict_proba", "FP64", [-1, 3])],
        copies=2,
        config='output [ { name: "predict" }, { name: "predict_proba" } ]',
    ),
}
