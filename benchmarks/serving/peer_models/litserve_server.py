"""LitServe with an ONNX file by ONNX Runtime."""

import sys

import litserve
import numpy as np
import onnxruntime


class OnnxApi(litserve.LitAPI):
    def setup(self, device):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])

    def decode_request(self, request):
        return np.array(request["x"], "f4")

    def batch(self, inputs):
        return np.concatenate(inputs)

    def predict(self, x):
        return self._session.run(None, {"x": x})[0]

    def unbatch(self, output):
        return [output[at : at + 1] for at in range(len(output))]

    def encode_response(self, output):
        return {"y": output.tolist()}


if __name__ == "__main__":
    api = OnnxApi(max_batch_size=64, batch_timeout=0.0005)
    server = litserve.LitServer(api, accelerator="cpu", workers_per_device=1)
    server.run(
        host="127.0.0.1", port=int(sys.argv[2]), num_api_servers=1, generate_client_file=False, log_level="error"
    )
