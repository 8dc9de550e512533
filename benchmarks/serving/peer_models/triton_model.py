"""A model of Triton's Python backend: its ONNX file by ONNX Runtime, all waiting requests in one run."""

import os
import sys
from pathlib import Path

sys.path.insert(0, os.environ["MODEL_PACKAGES"])  # the backend's interpreter knows no virtual environment

import numpy as np
import onnxruntime
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        file = Path(args["model_repository"]) / args["model_version"] / "model.onnx"
        self._session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])

    def execute(self, requests):
        inputs = [pb_utils.get_input_tensor_by_name(request, "x").as_numpy() for request in requests]
        (output,) = self._session.run(None, {"x": inputs[0] if len(inputs) == 1 else np.concatenate(inputs)})
        responses, at = [], 0
        for given in inputs:
            tensor = pb_utils.Tensor("y", output[at : at + len(given)])
            responses.append(pb_utils.InferenceResponse([tensor]))
            at += len(given)
        return responses
