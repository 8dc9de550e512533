"""Records what this release writes and takes: `python -m tests.releases.record` makes `tests/releases/<version>/`.

It is run for the last time when a release is made; from then on its files stay as they are, and later releases must go
on reading them.

inspect.json, profile.json, refused.json    what the runtime says about a model
metrics.txt                                 its metrics page after one request
options.json                                the options that it takes, by command
desired.json, observed.json, status.json    the files between the local driver and its agent

Beside them lie the chart, and `serving_runtime/` of the same commit (`git archive`): see `packages.py`.
"""

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import httpx

from integrations.clusters.local.documents import cluster_status_to_json, observed_to_json, order_to_json
from tests.releases import examples
from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.processes import server

HERE = Path(__file__).parent
_COMMANDS = ("inspect", "profile", "check-config", "prepare", "replay")


def version() -> str:
    """Return the version of this release."""
    return str(tomllib.loads((HERE.parents[1] / "pyproject.toml").read_text())["project"]["version"])


def files() -> dict[str, object]:
    """Return what driver and agent write for the examples, by the name of the record."""
    return {
        "desired.json": order_to_json(examples.ORDER),
        "observed.json": observed_to_json(examples.OBSERVED),
        "status.json": cluster_status_to_json(examples.STATUS),
    }


def told(command: str, folder: Path) -> str:
    """Return the line that the runtime answers about the model in `folder`."""
    done = subprocess.run(
        [sys.executable, "-m", "serving_runtime", command, str(folder), "--json"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.stdout


def metrics_page(scratch: Path) -> str:
    """Return the metrics page of a runtime that answered one request for `digits`."""
    onnx_models.mlp(scratch / "models" / "digits" / "1" / "model.onnx")
    tensor = {"name": "x", "datatype": "FP32", "shape": [1, 8], "data": [0.5] * 8}
    with server(scratch / "models", scratch=scratch) as started:
        url = f"{started.url}/v2/models/digits/infer"
        httpx.post(url, json={"inputs": [tensor]}, trust_env=False, timeout=60).raise_for_status()
        return started.metrics_page()


def options() -> dict[str, list[str]]:
    """Return the options of the runtime's commands; "" is serving."""
    return {command: _options(command) for command in ("", *_COMMANDS)}


def _options(command: str) -> list[str]:
    words = [sys.executable, "-m", "serving_runtime", *([command] if command else []), "--help"]
    shown = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True).stdout
    return sorted(set(re.findall(r"--[a-z][a-z0-9-]*", shown)))


def main() -> int:
    """Write the record of this release."""
    folder = HERE / version()
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        model = Path(scratch) / "digits"
        (folder / "refused.json").write_text(told("inspect", model))
        onnx_models.mlp(model / "1" / "model.onnx")
        for command in ("inspect", "profile"):
            (folder / f"{command}.json").write_text(told(command, model))
        (folder / "metrics.txt").write_text(metrics_page(Path(scratch)))
    for name, content in {**files(), "options.json": options()}.items():
        (folder / name).write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
