"""A model of arrays: `class Model` with `predict`, or a function `predict`, whose annotations are its signature.

It is called once for a batch, with the rows of all its requests; where that fails, once per request.
"""

import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from serving_runtime.backends.python.worker.annotated import ONLY_OUTPUT, Described, Refused, described
from serving_runtime.backends.python.worker.connection import current
from serving_runtime.backends.python.worker.messages import InferenceResponse, TritonError
from serving_runtime.backends.python.worker.model_config import ModelConfig
from serving_runtime.backends.python.worker.tensors import Tensor
from serving_runtime.datatypes import Array
from serving_runtime.request import Tensor as WireTensor

Asked = tuple[Mapping[str, Any], dict[str, Array]]
"""What is told of a request, and its arrays by the names of inputs."""


def completed(model: Any, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a config with what the annotations of a model say, where it leaves that out."""
    found = described(model.predict)
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


class AnnotatedModel:
    """The model and how it is called.

    Args:
        source: the class `Model`, or a module with a function `predict`.
    """

    def __init__(self, source: Any, *, batched: bool) -> None:
        self._model = source() if isinstance(source, type) else source
        self._described: Described = described(self._model.predict)
        self._batched = batched
        self.explains = hasattr(self._model, "explain")

    def execute(self, told: Sequence[Mapping[str, Any]], tensors: Sequence[WireTensor], *, explain: bool) -> None:
        """Run the requests of one batch and send their responses."""
        remaining = iter(tensors)
        requests: list[Asked] = [
            (request, {tensor.name: tensor.array for tensor in [next(remaining) for _ in range(request["inputs"])]})
            for request in told
        ]
        run = self._model.explain if explain else self._model.predict
        together = self._batched and len(requests) > 1
        if not (together and self._answered(run, requests, explain=explain, alone=False)):
            for request in requests:
                self._answered(run, [request], explain=explain, alone=True)

    def finalize(self) -> None:
        if hasattr(self._model, "close"):
            self._model.close()

    def _answered(self, run: Callable[..., Any], requests: Sequence[Asked], *, explain: bool, alone: bool) -> bool:
        """Send the responses, or where requests are alone the error; returns whether they have been sent."""
        try:
            responses = self._responses(run, requests, explain=explain)
        except Exception as error:
            if not alone:
                return False
            if isinstance(error, Refused):
                failure = TritonError(str(error), TritonError.INVALID_ARG)
            else:
                traceback.print_exc()
                failure = TritonError(f"the model failed: {type(error).__name__}: {error}")
            responses = [InferenceResponse(error=failure)]
        messages, outputs = [], []
        for (told, _), response in zip(requests, responses, strict=True):
            message, arrays = response.told(told["number"], final=True)
            messages.append(message)
            outputs += arrays
            current().answered(told["number"])
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
        """Return what the model returned by the names of outputs; what it explains has the names it likes."""
        specs = {} if explain else self._described.outputs
        if isinstance(returned, Mapping):
            named: Mapping[str, Any] = returned
        elif hasattr(returned, "_asdict"):
            named = returned._asdict()
        else:
            named = {ONLY_OUTPUT: returned}
        for name in specs:
            if name not in named:
                raise ValueError(f"predict() returned {', '.join(named) or 'nothing'}; its annotation has '{name}'")
        return {
            name: _array(value, specs[name].datatype.dtype if name in specs else None) for name, value in named.items()
        }


def _array(value: Any, dtype: Any) -> Array:
    return value if isinstance(value, np.ndarray) else np.asarray(value, dtype)


def _response(outputs: Mapping[str, Array]) -> InferenceResponse:
    return InferenceResponse([Tensor(name, array) for name, array in outputs.items()])
