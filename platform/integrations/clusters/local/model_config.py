"""Model config editor for `config.pbtxt` (Triton: model configuration, protobuf text format), without its schema. Pure.

Only whole top-level fields are removed and inserted; all text between them stays as its author wrote it.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from common.errors import InvalidInput

_TOKEN = re.compile(
    r"""(?P<skip>[\s,;]+|\#[^\n]*)|(?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|(?P<open>[{<\[])|(?P<close>[}>\]])"""
    r"""|(?P<colon>:)|(?P<word>[^\s,;#"'{}<>\[\]:]+)""",
    re.DOTALL,
)
# Triton: model_config.proto. Text format distinguishes enum values from strings, JSON does not.
_ENUM_FIELDS = frozenset({"data_type", "format", "kind", "timeout_action", "op", "action"})
_MAP_FIELDS = frozenset(
    {"parameters", "input_map", "output_map", "priority_queue_policy", "metric_tags", "inputs", "properties"}
)

_NUMBERED_MAPS = frozenset({"priority_queue_policy"})  # JSON's keys are texts, the message's are numbers


def rewrite(text: str, *, name: str, fields: Mapping[str, object]) -> str:
    """Return `text` with the model called `name` and every top-level field in `fields` replaced.

    Raises:
        InvalidInput: `text` is no protobuf text, or it cannot hold a value in `fields`.
    """
    if "name" in fields:
        raise InvalidInput(
            "the model config has a name of its own; leave it out, the service's name is served", field="name"
        )
    replaced = {"name", *fields}
    kept = [part for field, part in top_level(text) if field not in replaced]
    lines = [f"name: {_quoted(name)}", *(part.strip() for part in kept)]
    for field, value in fields.items():
        lines.extend(_rendered(field, value, field))
    return "\n".join(lines) + "\n"


def top_level(text: str) -> Iterator[tuple[str, str]]:
    """Yield each top-level field's name and its source text, in order."""
    tokens = list(tokens_of(text))
    index = 0
    while index < len(tokens):
        start = tokens[index]
        if start.lastgroup != "word":
            raise InvalidInput(
                f"config.pbtxt has {start.group()!r} where a field's name was expected (offset {start.start()})"
            )
        index += 1
        if index < len(tokens) and tokens[index].lastgroup == "colon":
            index += 1
        end = _value_end(tokens, index, start.group())
        yield start.group(), text[start.start() : tokens[end - 1].end()]
        index = end


def _value_end(tokens: Sequence[re.Match[str]], index: int, field: str) -> int:
    """Return the index after the value that begins at `index`: a scalar, adjacent strings, or a bracketed group."""
    first = index
    depth = 0
    while index < len(tokens):
        kind = tokens[index].lastgroup
        if kind == "open":
            depth += 1
        elif kind == "close":
            depth -= 1
        elif kind == "colon" and depth == 0:
            break
        index += 1
        if depth > 0 or (kind == "string" and index < len(tokens) and tokens[index].lastgroup == "string"):
            continue
        break
    if index == first or depth != 0:
        raise InvalidInput(f"config.pbtxt ends inside field {field!r}")
    return index


def tokens_of(text: str) -> Iterator[re.Match[str]]:
    """Yield words, strings, colons and brackets, distinguished by `lastgroup`; raises InvalidInput."""
    position = 0
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            raise InvalidInput(f"config.pbtxt has an unfinished string at offset {position}")
        if token.lastgroup != "skip":
            yield token
        position = token.end()


def _rendered(field: str, value: object, path: str) -> Iterator[str]:
    if isinstance(value, Mapping):
        if field in _MAP_FIELDS:
            for key, item in value.items():
                shown = str(key) if field in _NUMBERED_MAPS and str(key).isdecimal() else _quoted(str(key))
                yield f"{field} {{ key: {shown} {' '.join(_rendered('value', item, f'{path}.{key}'))} }}"
        else:
            inner = " ".join(line for key, item in value.items() for line in _rendered(str(key), item, f"{path}.{key}"))
            yield f"{field} {{ {inner} }}"
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        for number, item in enumerate(value):
            yield from _rendered(field, item, f"{path}[{number}]")
    else:
        yield f"{field}: {_scalar(field, value, path)}"


def _scalar(field: str, value: object, path: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return value if field in _ENUM_FIELDS and value.isidentifier() else _quoted(value)
    raise InvalidInput(
        f"the model config field {path} is {value!r}; expected a text, a number, true, false, a list or a mapping"
    )


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
