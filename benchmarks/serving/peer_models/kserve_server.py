"""KServe's server with ONNX files by ONNX Runtime."""

import argparse

import onnxruntime
from kserve import InferOutput, InferRequest, InferResponse, Model, ModelServer, model_server


class OnnxModel(Model):
    def __init__(self, name: str, file: str) -> None:
        super().__init__(name)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
        self.ready = True

    def predict(self, payload: InferRequest, headers=None, response_headers=None) -> InferResponse:
        (values,) = self._session.run(None, {"x": payload.inputs[0].as_numpy()})
        output = InferOutput("y", list(values.shape), "FP32")
        output.set_data_from_numpy(values, binary_data=True)
        return InferResponse(payload.id or "", self.name, [output])


parser = argparse.ArgumentParser(parents=[model_server.parser])
parser.add_argument("--models", nargs="+")
folder, *names = parser.parse_args().models
ModelServer(workers=1).start([OnnxModel(name, f"{folder}/{name}.onnx") for name in names])
