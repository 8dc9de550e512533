"""A closed loop of clients, in a process of its own: V2 over HTTP with binary tensors, each request a whole batch.

    python -m benchmarks.gpu.client URL MODEL NPY CLIENTS SECONDS

Prints one line of JSON: answered requests, and the seconds they took.
"""

import http.client
import json
import sys
import threading
import time
from urllib.parse import urlsplit

import numpy as np

_DATATYPES = {"int64": "INT64", "float16": "FP16", "float32": "FP32"}


def main() -> None:
    url, model, file, clients, seconds = sys.argv[1:]
    given = np.load(file)
    body, headers = request(given, name(url, model))
    counts: list[int] = []
    stop = threading.Event()
    ready = threading.Barrier(int(clients) + 1)

    def ask() -> None:
        connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=300)
        infer(connection, model, body, headers)
        ready.wait()
        count = 0
        while not stop.is_set():
            infer(connection, model, body, headers)
            count += 1
        counts.append(count)

    threads = [threading.Thread(target=ask) for _ in range(int(clients))]
    for thread in threads:
        thread.start()
    ready.wait(300)
    started = time.perf_counter()
    stop.wait(float(seconds))
    stop.set()
    for thread in threads:
        thread.join()
    print(json.dumps({"requests": sum(counts), "seconds": time.perf_counter() - started}))


def name(url: str, model: str) -> str:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=300)
    connection.request("GET", f"/v2/models/{model}")
    return str(json.loads(connection.getresponse().read())["inputs"][0]["name"])


def request(given: np.ndarray, tensor: str) -> tuple[bytes, dict[str, str]]:
    """Return body and headers (V2: binary tensor data extension)."""
    head = {
        "inputs": [
            {
                "name": tensor,
                "datatype": _DATATYPES[given.dtype.name],
                "shape": list(given.shape),
                "parameters": {"binary_data_size": given.nbytes},
            }
        ],
        "parameters": {"binary_data_output": True},
    }
    text = json.dumps(head).encode()
    return text + given.tobytes(), {"Inference-Header-Content-Length": str(len(text))}


def infer(connection: http.client.HTTPConnection, model: str, body: bytes, headers: dict[str, str]) -> None:
    connection.request("POST", f"/v2/models/{model}/infer", body, headers)
    answer = connection.getresponse()
    content = answer.read()
    if answer.status != 200:
        sys.exit(f"{model}: {answer.status} {content[:500]!r}")


if __name__ == "__main__":
    main()
