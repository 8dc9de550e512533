"""Annotated model: `class Model` with `predict`, or a function `predict`; annotations declare its signature.

It is called once for a batch, with the rows of all its requests; where that fails, once per request.

    preprocess(**inputs) -> predict(what that returned) -> postprocess(what that returned) -> outputs

Each of the three is optional, as in KServe. Without `predict` the predictor is called.
"""

import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from serving_runtime.backends.python.worker.annotated import ONLY_OUTPUT, Described, Refused, described
from serving_runtime.backends.python.worker.connection import current
from serving_runtime.backends.python.worker.messages import InferenceResponse, TritonError
from serving_runtime.backends.python.worker.model_config import ModelConfig
from serving_runtime.backends.python.worker.predictor import Predictor, PredictorError
from serving_runtime.backends.python.worker.tensors import Tensor
from serving_runtime.common.datatypes import Array
from serving_runtime.common.request import Tensor as WireTensor

Asked = tuple[Mapping[str, Any], dict[str, Array]]
"""Properties of a request, and its arrays by the names of inputs."""


def completed(model: Any, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a config completed by a model's annotations."""
    found = described_stages(model)
    filled = ModelConfig(config)
    if not config.get("max_batch_size"):
        filled.set_max_batch_size(getattr(model, "max_batch_size", 0))
        if filled.as_dict()["max_batch_size"] > 1:
            filled.set_dynamic_batching()
    for name, spec in found.inputs.items():
        own = {"name": name, "data_type": spec.datatype.config_name, "dims": spec.dims}
        filled.add_input({**own, **({"optional": True} if name in found.optional else {})})
    for name, spec in found.outputs.items():
        filled.add_output({"name": name, "data_type": spec.datatype.config_name, "dims": spec.dims})
    return filled.as_dict()


def described_stages(model: Any) -> Described:
    """Return the inputs of the model's first method and the outputs of the last; raises TypeError."""
    first = getattr(model, "preprocess", None) or getattr(model, "predict", None)
    last = getattr(model, "postprocess", None) or getattr(model, "predict", None)
    if first is None or last is None:
        raise TypeError(
            "a model without predict() needs preprocess() and postprocess(), whose annotations say what it takes and "
            "gives; each may return what it is given"
        )
    return described(first, last)


class AnnotatedModel:
    """The model and how it is called.

    Args:
        source: the class `Model`, or a module with a function `predict`.
    """

    def __init__(self, source: Any, *, batched: bool) -> None:
        self._model = source() if isinstance(source, type) else source
        self._described: Described = described_stages(self._model)
        self._predictor = None if hasattr(self._model, "predict") else _predictor()
        self._batched = batched
        self.explains = hasattr(self._model, "explain")

    def execute(self, content: Sequence[Mapping[str, Any]], tensors: Sequence[WireTensor], *, explain: bool) -> None:
        """Run the requests of one batch and send their responses."""
        remaining = iter(tensors)
        requests: list[Asked] = [
            (request, {tensor.name: tensor.array for tensor in [next(remaining) for _ in range(request["inputs"])]})
            for request in content
        ]
        run = self._model.explain if explain else self._run
        together = self._batched and len(requests) > 1
        if not (together and self._answered(run, requests, explain=explain, alone=False)):
            for request in requests:
                self._answered(run, [request], explain=explain, alone=True)

    def finalize(self) -> None:
        if hasattr(self._model, "close"):
            self._model.close()

    def _run(self, **inputs: Array) -> Any:
        """Return what the last stage returns."""
        model, payload = self._model, None
        if not hasattr(model, "preprocess"):
            payload = model.predict(**inputs)
        else:
            payload = model.preprocess(**inputs)
            payload = model.predict(payload) if self._predictor is None else self._predictor.ask(_by_name(payload))
        return model.postprocess(payload) if hasattr(model, "postprocess") else payload

    def _answered(self, run: Callable[..., Any], requests: Sequence[Asked], *, explain: bool, alone: bool) -> bool:
        """Send the responses, or the error where requests run alone; returns whether they have been sent."""
        try:
            responses = self._responses(run, requests, explain=explain)
        except Exception as error:
            if not alone:
                return False
            if isinstance(error, Refused):
                failure = TritonError(str(error), TritonError.INVALID_ARG)
            elif isinstance(error, PredictorError):
                failure = TritonError(str(error), error.code)
            else:
                traceback.print_exc()
                failure = TritonError(f"the model failed: {type(error).__name__}: {error}")
            responses = [InferenceResponse(error=failure)]
        messages, outputs = [], []
        for (content, _), response in zip(requests, responses, strict=True):
            message, arrays = response.content(content["number"], final=True)
            messages.append(message)
            outputs += arrays
            current().answered(content["number"])
        current().send({"do": "responses", "responses": messages}, outputs)
        return True

    def _responses(
        self, run: Callable[..., Any], requests: Sequence[Asked], *, explain: bool
    ) -> list[InferenceResponse]:
        if len(requests) == 1:
            return [_response(self._named(run(**requests[0][1]), explain=explain))]
        joined = {name: np.concatenate([arrays[name] for _, arrays in requests]) for name in requests[0][1]}
        ends = np.cumsum([len(next(iter(arrays.values()))) for _, arrays in requests]).tolist()
        outputs = self._named(run(**joined), explain=explain)
        for name, array in outputs.items():
            if not array.ndim or len(array) != ends[-1]:
                raise ValueError(f"output '{name}' has shape {list(array.shape)} for a batch of {ends[-1]}")
        return [
            _response({name: array[start:end] for name, array in outputs.items()})
            for start, end in zip([0, *ends], ends, strict=False)
        ]

    def _named(self, returned: Any, *, explain: bool) -> dict[str, Array]:
        """Return the model's result by output names; explanations keep their own names."""
        specs = {} if explain else self._described.outputs
        named = _by_name(returned)
        for name in specs:
            if name not in named:
                raise ValueError(f"the model returned {', '.join(named) or 'nothing'}; its annotation has '{name}'")
        return {
            name: _array(value, specs[name].datatype.dtype if name in specs else None) for name, value in named.items()
        }


def _by_name(returned: Any) -> Mapping[str, Any]:
    """Return arrays by name: of a mapping, of a NamedTuple, or the single array without a name."""
    if isinstance(returned, Mapping):
        return returned
    return returned._asdict() if hasattr(returned, "_asdict") else {ONLY_OUTPUT: returned}


def _predictor() -> Predictor:
    found = Predictor.of_environment()
    if found is None:
        raise TypeError(
            "it has no predict(), and no predictor is named by PREDICTOR_HOST and MODEL_NAME; start it by "
            "fairlead-serve transformer"
        )
    return found


def _array(value: Any, dtype: Any) -> Array:
    return value if isinstance(value, np.ndarray) else np.asarray(value, dtype)


def _response(outputs: Mapping[str, Array]) -> InferenceResponse:
    return InferenceResponse([Tensor(name, array) for name, array in outputs.items()])
