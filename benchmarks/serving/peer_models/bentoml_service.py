"""BentoML with an ONNX file by ONNX Runtime."""

import os

import bentoml
import numpy as np
import onnxruntime


@bentoml.service(workers=1, metrics={"enabled": False})
class Mlp:
    def __init__(self) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        file = os.environ["MODEL_FILE"]
        self._session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])

    @bentoml.api
    def predict(self, x: np.ndarray) -> np.ndarray:
        return self._session.run(None, {"x": np.asarray(x, "f4")})[0]
