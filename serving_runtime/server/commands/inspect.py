"""The commands `inspect` and `profile`: one model's folder in, JSON out; exit 0, or 2 when it cannot be served."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from serving_runtime.engine.inspection.answers import answer
from serving_runtime.engine.loading.settings import LoadSettings
from serving_runtime.server.flags.parser import Parser
from serving_runtime.server.flags.types import add_bool, add_config_name

_COMMANDS = {
    "inspect": "Prints signature and platform of one model's folder.",
    "profile": "Measures one model: load time, memory, latency per batch size.",
}


def main(arguments: Sequence[str]) -> int:
    """Run `inspect` or `profile`; returns the exit code."""
    command = arguments[0]
    parser = Parser(prog=f"fairlead-serve {command}", description=_COMMANDS[command], allow_abbrev=False)
    parser.add_argument(
        "model_dir",
        type=Path,
        metavar="MODEL_DIR",
        help="folder with <version>/model.onnx and an optional config.pbtxt",
    )
    add_bool(parser, "--allow-python-models", default=False, text="inspects models whose files are code, by running it")
    add_config_name(parser)
    parser.add_argument(
        "--json", action="store_true", help="prints one line of JSON, also for errors (default: indented)"
    )
    found = parser.parse_args(arguments[1:])
    settings = LoadSettings(config_name=found.model_config_name, allow_python_models=found.allow_python_models)
    exit_code, document = answer(command, found.model_dir, settings)
    sys.stdout.write(json.dumps(document, indent=None if found.json else 2) + "\n")
    return exit_code
