"""A runtime of MLServer: an ONNX file by ONNX Runtime."""

import onnxruntime
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceRequest, InferenceResponse


class OnnxModel(MLModel):
    async def load(self) -> bool:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        uri = self.settings.parameters.uri
        self._session = onnxruntime.InferenceSession(uri, options, providers=["CPUExecutionProvider"])
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        array = NumpyCodec.decode_input(payload.inputs[0])
        (output,) = self._session.run(None, {"x": array})
        return InferenceResponse(model_name=self.name, outputs=[NumpyCodec.encode_output("y", output)])
