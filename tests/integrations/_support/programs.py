"""Programs in folders, as deployers write them: a predictor, a transformer and an explainer of the standard library."""

import sys
from pathlib import Path

from integrations.artifacts.programs import recorded
from integrations.clusters.base import DesiredCompanion, DesiredPredictor

_SERVER = '''
import json
import os
import signal
import sys
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PARAMETER = json.loads(Path("parameter.json").read_text())


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.reply({"name": os.environ["MODEL_NAME"], "ready": True})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.reply(answer(self.path, body))

    def reply(self, said):
        content = json.dumps(said).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = False  # what was accepted is answered
    request_queue_size = 128


def predictor(body):
    """Ask the predictor, as companions do."""
    name = os.environ["MODEL_NAME"]
    request = urllib.request.Request(
        f"http://{os.environ['PREDICTOR_HOST']}/v2/models/{name}/infer",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=20) as found:
        return json.loads(found.read())


def output(data):
    tensor = {"name": "y", "datatype": "FP32", "shape": [1, len(data)], "data": data}
    return {"model_name": os.environ["MODEL_NAME"], "model_version": "1", "outputs": [tensor]}


#ANSWER#

assert sys.argv[1] == "--http_port=" + os.environ["PORT"]
print("listening at", os.environ["PORT"], flush=True)
server = Server(("127.0.0.1", int(os.environ["PORT"])), Handler)
signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
server.serve_forever()
'''
TIMES = '''
def answer(path, body):
    """Multiply x by the parameter."""
    return output([PARAMETER * each for each in body["inputs"][0]["data"]])
'''
PLUS = '''
def answer(path, body):
    """Add the parameter to x before the predictor gets it."""
    x = body["inputs"][0]
    return predictor({"inputs": [{**x, "data": [PARAMETER + each for each in x["data"]]}]})
'''
EXPLAIN = '''
def answer(path, body):
    """Say what the predictor makes of x."""
    return {"explained": path, "by": predictor(body)["outputs"][0]["data"], "token": os.environ.get("TOKEN", "")}
'''


def program(folder: Path, answer: str, parameter: float = 0) -> Path:
    """Write a program into a new folder; returns it."""
    folder.mkdir(parents=True)
    (folder / "serve.py").write_text(_SERVER.replace("#ANSWER#", answer))
    (folder / "parameter.json").write_text(str(parameter))
    return folder


COMMAND = (sys.executable, "-B", "serve.py")
ARGS = ("--http_port=$(PORT)",)


def custom(folder: Path, *, protocol: str = "v2") -> DesiredPredictor:
    """Return a program as custom predictor, as it is recorded."""
    record = recorded(str(folder), [folder.parent], home=folder.parent / "home-of-platform")
    return DesiredPredictor(record, protocol, command=COMMAND, args=ARGS, working_dir=str(folder))


def companion(folder: Path, **env: str) -> DesiredCompanion:
    """Return a program as companion, as it is recorded."""
    record = recorded(str(folder), [folder.parent], home=folder.parent / "home-of-platform")
    return DesiredCompanion(record, 1, command=COMMAND, args=ARGS, env=env, working_dir=str(folder))
