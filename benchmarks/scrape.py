"""What a scrape of /metrics costs other clients: the delay of their answers while the page of many models is made.

    python -m benchmarks.scrape [--models 1000] [--asked 1000] [--scrapes 10]
    python -m benchmarks.scrape --turns      # processor time of the turns of the event loop alone; no server

One server has as many models, of which `--asked` have answered a request. One client asks for health again and again
over one connection while the page is scraped by another process, in each form; the table has its slowest answers, and
those without a scrape beside it.
"""

import argparse
import http.client
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import onnx
from onnx import TensorProto, helper

from serving_runtime.telemetry.metrics import protobuf, text
from serving_runtime.telemetry.metrics.families import ModelSeries, process_families
from serving_runtime.telemetry.metrics.page import Page
from serving_runtime.telemetry.metrics.settings import MetricsSettings
from serving_runtime.telemetry.statistics import BatchTiming, ModelStatistics

_START_S = 600.0
_QUIET_S = 3.0

FORMS = {
    "text": {},
    "text, gzip": {"Accept-Encoding": "gzip"},
    "protobuf": {
        "Accept": "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
    },
}

SCRAPER = """
import http.client, json, sys, time
port, count, headers = int(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3])
for _ in range(count):
    began = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/metrics", headers=headers)
    size = len(connection.getresponse().read())
    print(json.dumps([time.perf_counter() - began, size]), flush=True)
    time.sleep(0.2)
"""


def repository(root: Path, models: int) -> None:
    """Make models that are as small as can be."""
    tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 1]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", tensors[:1], tensors[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    content = model.SerializeToString()
    onnx.checker.check_model(model)
    for number in range(models):
        folder = root / f"model-{number:04}" / "1"
        folder.mkdir(parents=True)
        (folder / "model.onnx").write_bytes(content)


@contextmanager
def server(root: Path, scratch: Path) -> Iterator[dict[str, int]]:
    """Run a server; yields its ports."""
    ports = scratch / "ports.json"
    flags = [f"--{name}-address=127.0.0.1" for name in ("http", "grpc", "metrics")]
    flags += [f"--{name}-port=0" for name in ("http", "grpc", "metrics")]
    command = [sys.executable, "-m", "serving_runtime", f"--model-repository={root}", f"--port-file={ports}", *flags]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            deadline = time.monotonic() + _START_S
            while not ports.exists():
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError("the server did not come up")
                time.sleep(0.05)
            yield json.loads(ports.read_text())
        finally:
            process.terminate()
            process.wait(60)


def ask_models(port: int, asked: int) -> None:
    """Have so many models answer a request."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    body = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [1]}]})
    for number in range(asked):
        connection.request("POST", f"/v2/models/model-{number:04}/infer", body)
        answer = connection.getresponse()
        answer.read()
        if answer.status != 200:
            raise RuntimeError(f"a model answered {answer.status}")


def delays_ms(port: int, scraping: "subprocess.Popen[str] | None") -> list[float]:
    """Return how long answers took, while a process scrapes or for a while."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    found = []
    end = time.perf_counter() + _QUIET_S
    while scraping.poll() is None if scraping is not None else time.perf_counter() < end:
        began = time.perf_counter()
        connection.request("GET", "/v2/health/live")
        connection.getresponse().read()
        found.append((time.perf_counter() - began) * 1000)
        time.sleep(0.0005)
    return found


def row(name: str, delays: list[float], scrapes: list[list[float]]) -> str:
    ordered = sorted(delays)
    seconds = f"{statistics.median(each[0] for each in scrapes):.3f}" if scrapes else ""
    size = f"{scrapes[-1][1] / 1e6:.2f}" if scrapes else ""
    high = ordered[int(len(ordered) * 0.99)]
    return f"| {name} | {statistics.median(ordered):.2f} | {high:.1f} | {ordered[-1]:.1f} | {seconds} | {size} |"


def turns(models: int) -> None:
    """Print the processor time of a first page, and of one after it without requests in between."""
    every = []
    for number in range(models):
        counted = ModelStatistics()
        counted.accepted = 1
        counted.record_batch([1000], 1, BatchTiming(2000, 3000, 4000, 5000))
        every.append(ModelSeries(f"model-{number:04}", "1", counted, 0))
    print("| form | page | turns | longest, ms | all, ms |\n| --- | --- | --- | --- | --- |")
    for form in (text, protobuf):
        page = Page(form, MetricsSettings())
        for name in ("first", "next"):
            pieces, took = page.pieces(every, lambda: process_families(None)), []
            while True:
                began = time.thread_time()
                going_on = next(pieces, True)
                took.append((time.thread_time() - began) * 1000)
                if going_on:
                    break
            kind = form.__name__.rpartition(".")[2]
            print(f"| {kind} | {name} | {len(took)} | {max(took):.1f} | {sum(took):.0f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=1000)
    parser.add_argument("--asked", type=int, default=1000)
    parser.add_argument("--scrapes", type=int, default=10)
    parser.add_argument("--turns", action="store_true")
    found = parser.parse_args()
    if found.turns:
        turns(found.models)
        return
    scratch = Path(tempfile.mkdtemp(prefix="fairlead-scrape-"))
    try:
        repository(scratch / "models", found.models)
        with server(scratch / "models", scratch) as ports:
            ask_models(ports["http"], min(found.asked, found.models))
            print(f"{found.models} models, {min(found.asked, found.models)} of which answered a request\n")
            print("| form | median, ms | 99 %, ms | slowest, ms | a scrape, s | page, MB |")
            print("| --- | --- | --- | --- | --- | --- |")
            print(row("no scrape", delays_ms(ports["http"], None), []), flush=True)
            for name, headers in FORMS.items():
                command = [
                    sys.executable,
                    "-c",
                    SCRAPER,
                    str(ports["metrics"]),
                    str(found.scrapes),
                    json.dumps(headers),
                ]
                with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as scraping:
                    delays = delays_ms(ports["http"], scraping)
                    scrapes = [json.loads(line) for line in scraping.stdout or ()]
                print(row(name, delays, scrapes), flush=True)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main()
