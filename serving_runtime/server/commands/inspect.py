"""The commands `inspect` and `profile`: one model's folder in, JSON out; exit 0, or 2 when it cannot be served."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from serving_runtime.common.errors import ServingError, is_of_installation
from serving_runtime.engine.inspection import model
from serving_runtime.engine.loading.settings import LoadSettings
from serving_runtime.server.flags.parser import Parser
from serving_runtime.server.flags.types import add_bool, add_config_name

_COMMANDS = {
    "inspect": (model.inspect, model.INSPECT_SCHEMA, "Prints signature and platform of one model's folder."),
    "profile": (
        model.profile,
        model.PROFILE_SCHEMA,
        "Measures one model: load time, memory, latency per batch size.",
    ),
}


def main(arguments: Sequence[str]) -> int:
    """Run `inspect` or `profile`; returns the exit code."""
    command, schema, description = _COMMANDS[arguments[0]]
    parser = Parser(prog=f"fairlead-serve {arguments[0]}", description=description, allow_abbrev=False)
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
    try:
        settings = LoadSettings(config_name=found.model_config_name, allow_python_models=found.allow_python_models)
        _print(command(found.model_dir, settings), compact=found.json)
    except ServingError as error:
        answer: dict[str, Any] = {"schema": schema, "error": str(error)}
        if is_of_installation(error):
            answer["of_installation"] = True
        _print(answer, compact=found.json)
        return 2
    return 0


def _print(content: dict[str, Any], *, compact: bool) -> None:
    sys.stdout.write(json.dumps(content, indent=None if compact else 2) + "\n")
