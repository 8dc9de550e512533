"""Requests a second of the serving runtime over HTTP, beside a bare loop that only echoes, in the same minute.

    python benchmarks/http_infer.py [--seconds 3] [--repeats 3]

The server has one core, wrk the other; runs are interleaved and the median is shown. Compare the ratios: absolute
figures move with the machine. On a machine that is busy with other work only the processor time per request, which
is shown beside the rates, says something. The model is 64-256-256-10 with a dynamic batcher of up to 64; requests are
binary
(also with an id that changes) or JSON. Needs wrk, taskset and the onnx package.
"""

import argparse
import itertools
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SERVER_CORE, CLIENT_CORE = "0", "1"
SIZES = (64, 256, 256, 10)


@dataclass(frozen=True)
class Server:
    """A running server."""

    url: str
    pid: int


def save_model(file: Path) -> None:
    random = np.random.default_rng(0)
    nodes, weights, current = [], [], "x"
    for layer, (rows, columns) in enumerate(itertools.pairwise(SIZES)):
        weights.append(
            numpy_helper.from_array((random.standard_normal((rows, columns)) / 10).astype("f4"), f"w{layer}")
        )
        weights.append(numpy_helper.from_array(np.zeros(columns, "f4"), f"b{layer}"))
        nodes.append(helper.make_node("Gemm", [current, f"w{layer}", f"b{layer}"], [f"h{layer}"]))
        nodes.append(helper.make_node("Relu", [f"h{layer}"], [f"r{layer}"]))
        current = f"r{layer}"
    nodes.append(helper.make_node("Identity", [current], ["y"]))
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", SIZES[0]])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", SIZES[-1]])]
    graph = helper.make_graph(nodes, "mlp_small", inputs, outputs, weights)
    file.parent.mkdir(parents=True)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(file))
    (file.parent.parent / "config.pbtxt").write_text("max_batch_size: 64\ndynamic_batching { }\n")


def lua(text: bytes) -> str:
    return '"' + "".join(f"\\{byte:03d}" for byte in text) + '"'


def scripts(folder: Path) -> dict[str, Path]:
    """Write wrk's scripts: what to send, by name."""
    data = np.linspace(0, 1, SIZES[0], dtype="f4")
    tensor = {"name": "x", "shape": [1, SIZES[0]], "datatype": "FP32"}
    binary = {**tensor, "parameters": {"binary_data_size": data.nbytes}}
    outputs = [{"name": "y", "parameters": {"binary_data": True}}]
    head = json.dumps({"inputs": [binary], "outputs": outputs}).encode()
    with_id = json.dumps({"id": "%08d", "inputs": [binary], "outputs": outputs}).encode()
    as_json = json.dumps({"inputs": [{**tensor, "data": [round(float(value), 4) for value in data]}]}).encode()
    length = "Inference-Header-Content-Length"
    texts = {
        "binary": f"""wrk.method = "POST"
            wrk.body = {lua(head + data.tobytes())}
            wrk.headers["{length}"] = "{len(head)}" """,
        "binary, ids": f"""local n = 0
            function request()
              n = n + 1
              local head = string.format({lua(with_id)}, n)
              return wrk.format("POST", nil, {{["{length}"] = #head}}, head .. {lua(data.tobytes())})
            end""",
        "json": f'wrk.method = "POST" wrk.body = {lua(as_json)}',
    }
    files = {}
    for number, (name, text) in enumerate(texts.items()):
        files[name] = folder / f"{number}.lua"
        files[name].write_text(text)
    return files


@contextmanager
def running(*command: str) -> Iterator["subprocess.Popen[str]"]:
    pinned = ["taskset", "-c", SERVER_CORE, sys.executable, *command]
    with subprocess.Popen(pinned, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            yield process
        finally:
            process.terminate()


def wait_for(file: Path) -> dict[str, int]:
    deadline = time.monotonic() + 30
    while not file.exists():
        if time.monotonic() > deadline:
            raise SystemExit("the serving runtime did not come up")
        time.sleep(0.05)
    ports: dict[str, int] = json.loads(file.read_text())
    return ports


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measured(server: Server, script: Path, connections: int, seconds: int) -> tuple[float, float]:
    """Return requests a second, and microseconds of the server's processor time per request."""
    before = processor_seconds(server.pid)
    rate, requests = wrk(server.url, script, connections, seconds)
    return rate, (processor_seconds(server.pid) - before) / requests * 1e6


def wrk(url: str, script: Path, connections: int, seconds: int) -> tuple[float, int]:
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}", "-s", str(script), url]
    output = subprocess.run(["taskset", "-c", CLIENT_CORE, *command], capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in output:
        raise SystemExit(f"wrong answers from {url}:\n{output}")
    rate, count = re.search(r"Requests/sec:\s+([\d.]+)", output), re.search(r"(\d+) requests in", output)
    if not (rate and count and int(count[1])):
        raise SystemExit(f"no answers from {url}:\n{output}")
    return float(rate[1]), int(count[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=3, help="of one run (3)")
    parser.add_argument("--repeats", type=int, default=3, help="of each run (3)")
    found = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save_model(folder / "models" / "mlp_small" / "1" / "model.onnx")
        files = scripts(folder)
        flags = ["--http-address=127.0.0.1", "--http-port=0", "--metrics-port=0", "--allow-grpc=false"]
        runtime = ["-m", "serving_runtime", f"--model-repository={folder / 'models'}", *flags]
        bare = str(Path(__file__).with_name("bare_http.py"))
        with running(*runtime, f"--port-file={folder / 'ports'}") as serving, running(bare) as echo:
            assert echo.stdout is not None
            bare_url = f"http://127.0.0.1:{int(echo.stdout.readline())}/"
            url = f"http://127.0.0.1:{wait_for(folder / 'ports')['http']}/v2/models/mlp_small/infer"
            servers = {"bare": Server(bare_url, echo.pid), "fairlead": Server(url, serving.pid)}
            print(f"{'':22}{'requests a second':>24}{'':8}{'us of processor each':>24}")
            print(f"{'':22}{'bare':>12}{'fairlead':>12}{'ratio':>8}{'bare':>12}{'fairlead':>12}{'ratio':>8}")
            for connections in (1, 8, 32):
                for form, script in files.items():
                    print(line(f"{form}, c={connections}", servers, script, connections, found), flush=True)


def line(label: str, servers: dict[str, Server], script: Path, connections: int, options: argparse.Namespace) -> str:
    runs: dict[str, list[tuple[float, float]]] = {name: [] for name in servers}
    for _ in range(options.repeats):
        for name, server in servers.items():
            runs[name].append(measured(server, script, connections, options.seconds))
    cells = f"{label:22}"
    for column in (0, 1):
        bare, fairlead = (statistics.median(run[column] for run in runs[name]) for name in ("bare", "fairlead"))
        cells += f"{bare:12.1f}{fairlead:12.1f}{fairlead / bare:8.2f}"
    return cells


if __name__ == "__main__":
    main()
