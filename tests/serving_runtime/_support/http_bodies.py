"""Bodies of HTTP requests."""

import json

import numpy as np


def body(width: int) -> tuple[bytes, dict[str, str]]:
    data = np.ones((1, width), "f4").tobytes()
    tensor = {"name": "x", "datatype": "FP32", "shape": [1, width], "parameters": {"binary_data_size": len(data)}}
    head = json.dumps({"inputs": [tensor]}).encode()
    return head + data, {"Inference-Header-Content-Length": str(len(head))}
