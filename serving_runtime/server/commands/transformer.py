"""Command `transformer`: runs a Python class in front of a model on another server, configured as by KServe.

    fairlead-serve transformer FOLDER --model_name=digits --predictor_host=digits-00001.default:8000

FOLDER holds model.py, and may hold a config.pbtxt and what model.py imports. It is served under the model's name like
any Python model; only its `predict` is the predictor.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from serving_runtime.common.errors import ModelError, ServingError
from serving_runtime.server.flags import command_line
from serving_runtime.server.flags.parser import Parser
from serving_runtime.server.flags.types import EVERYWHERE, address, port_number

_CONFIG, _MODEL = "config.pbtxt", "model.py"


def main(arguments: Sequence[str]) -> int:
    """Run `transformer`; returns the exit code."""
    from serving_runtime.server import serve  # noqa: PLC0415 - --help and bad flags answer before anything is loaded

    found = _parser().parse_args(arguments[1:])
    try:
        with tempfile.TemporaryDirectory(prefix="fairlead-transformer-") as repository:
            lay_out(found.folder, Path(repository), found.model_name)
            os.environ |= {"PREDICTOR_HOST": found.predictor_host, "MODEL_NAME": found.model_name}
            flags = [f"--model-repository={repository}", "--allow-python-models=true"]
            flags += [f"--{name}-port={getattr(found, f'{name}_port')}" for name in ("http", "grpc", "metrics")]
            flags += [f"--{protocol}-address={found.address}" for protocol in ("http", "grpc")]
            flags += [f"--revision={revision}"] if (revision := os.environ.get("FAIRLEAD_REVISION")) else []
            flags += [f"--port-file={found.port_file}"] if found.port_file else []
            return serve.run(command_line.parse(flags))
    except (ServingError, OSError) as error:
        sys.stderr.write(f"fairlead-serve transformer: {error}\n")
        return 1


def lay_out(folder: Path, repository: Path, name: str) -> None:
    """Make a model repository of the transformer's folder; raises ModelError where it has none."""
    if not (folder / _MODEL).is_file():
        raise ModelError(f"there is no {_MODEL} in {folder}; a transformer is a class Transformer in it")
    model = repository / name
    shutil.copytree(folder, model / "1", ignore=shutil.ignore_patterns(_CONFIG, "__pycache__"))
    config = folder / _CONFIG
    written = config.read_text(encoding="utf-8") if config.is_file() else ""
    (model / _CONFIG).write_text(written or 'backend: "python"\n', encoding="utf-8")


def _parser() -> Parser:
    environment = os.environ
    parser = Parser(
        prog="fairlead-serve transformer", description=(__doc__ or "").split("\n", 1)[0], allow_abbrev=False
    )
    parser.add_argument(
        "folder", type=Path, metavar="FOLDER", help="folder with model.py, which defines a class Transformer"
    )
    for flag, variable, text in (
        ("--model_name", "MODEL_NAME", "name of the model, here and at the predictor"),
        ("--predictor_host", "PREDICTOR_HOST", "HOST:PORT of the predictor over HTTP"),
    ):
        default = environment.get(variable, "")
        parser.add_argument(flag, required=not default, default=default, help=f"{text} ({variable})")
    for name, port in (("http", 8080), ("grpc", 8081), ("metrics", 8002)):
        parser.add_argument(
            f"--{name}_port", type=port_number, default=port, metavar="N", help=f"port for {name} ({port})"
        )
    parser.add_argument(
        "--address", type=address, default=EVERYWHERE, metavar="IP", help="address to listen on (::, all)"
    )
    parser.add_argument("--port-file", type=Path, metavar="FILE", help="file for the ports, as JSON, once it listens")
    return parser
