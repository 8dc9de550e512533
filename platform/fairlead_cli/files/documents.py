"""YAML and JSON document reader for service, policy and cluster files, as JSON values for the control plane."""

import math
import sys
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from fairlead_cli.client import Json
from fairlead_cli.errors import CliError

# A one-line file can expand beyond memory, by anchors that name each other, or by one that names itself.
_MAX_VALUES = 100_000


class _Loader(yaml.SafeLoader):
    """YAML's plain types, without dates (JSON has none, so they stay texts) and without duplicate fields."""

    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                problem = f"the field {key.value!r} is there twice"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


def read_documents(path: Path) -> list[Json]:
    """Return the objects in a file, one or more, `-` for standard input."""
    what = "standard input" if str(path) == "-" else str(path)
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise CliError(f"{what} is no text in UTF-8; expected YAML or JSON") from error
    except OSError as error:
        raise CliError(f"{what} cannot be read: {error.strerror}") from error
    try:
        documents = [document for document in yaml.load_all(text, _Loader) if document is not None]
    except yaml.YAMLError as error:
        raise CliError(f"{what} is neither YAML nor JSON: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise CliError(f"{what} is nested too deeply; expected a service or a policy") from error
    if not documents:
        raise CliError(f"{what} is empty; expected a service or a policy")
    if not all(isinstance(document, dict) for document in documents):
        raise CliError(f"{what} holds no object; expected the named fields of a service or a policy")
    for document in documents:
        _refuse_what_json_cannot_say(document, what)
    return documents


def _refuse_what_json_cannot_say(document: Json, what: str) -> None:
    waiting: list[object] = [document]
    count = 0
    while waiting:
        value = waiting.pop()
        count += 1
        if count > _MAX_VALUES:
            raise CliError(f"{what} has more than {_MAX_VALUES} values, its anchors written out; expected a short file")
        if isinstance(value, dict):
            waiting += [*value.keys(), *value.values()]
        elif isinstance(value, list):
            waiting += value
        elif not isinstance(value, str | int | float | None) or (isinstance(value, float) and not math.isfinite(value)):
            raise CliError(f"{what} has the value {str(value)[:60]!r}, which JSON cannot say; put it in quotes")
