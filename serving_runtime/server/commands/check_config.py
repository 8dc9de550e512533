"""The command `check-config`: fields of a model's config in, JSON out; exit 0, or 2 when no model could have them.

It loads nothing, so that the response to an applied file is immediate.
"""

import argparse
import json
import sys
from collections.abc import Sequence

from serving_runtime.config.fragment import mistake_in
from serving_runtime.config.text import MAX_CONFIG_BYTES

SCHEMA = "fairlead.check-config/v1"


def main(arguments: Sequence[str]) -> int:
    """Run `check-config`; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="fairlead-serve check-config",
        description="Checks fields of a config.pbtxt on standard input, without a model.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--json", action="store_true", help="prints one line of JSON, also for errors (default: indented)"
    )
    indent = None if parser.parse_args(arguments[1:]).json else 2
    content = sys.stdin.buffer.read(MAX_CONFIG_BYTES + 1)
    answer = {"schema": SCHEMA, **_looked_at(content)}
    sys.stdout.write(json.dumps(answer, indent=indent) + "\n")
    return 2 if "error" in answer else 0


def _looked_at(content: bytes) -> dict[str, str]:
    if len(content) > MAX_CONFIG_BYTES:
        return {"field": "", "error": f"the configuration is larger than {MAX_CONFIG_BYTES} bytes"}
    try:
        mistake = mistake_in(content.decode())
    except UnicodeDecodeError as error:
        return {"field": "", "error": f"the configuration is not UTF-8: {error}"}
    return {} if mistake is None else {"field": mistake.field, "error": mistake.error}
