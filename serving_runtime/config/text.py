"""config.pbtxt parser to a ModelConfig message, and the config endpoint's JSON."""

import difflib
import re
from pathlib import Path
from typing import Any

from google.protobuf import text_format

from serving_runtime import proto
from serving_runtime.common.errors import ModelError

MAX_CONFIG_BYTES = 4 * 1024 * 1024
_UNKNOWN_FIELD = re.compile(r'Message type "([\w.]+)" has no field named "(\w+)"')


def read(path: Path, model: str) -> Any:
    """Return the ModelConfig in a config.pbtxt, an empty one where the file is missing.

    Raises ModelError, naming line and field, when it does not parse.
    """
    config = proto.ModelConfig()
    try:
        if path.stat().st_size > MAX_CONFIG_BYTES:
            raise ModelError(f"model '{model}': {path.name} is larger than {MAX_CONFIG_BYTES} bytes")
        text_format.Parse(path.read_text("utf-8"), config)
    except FileNotFoundError:
        return config
    except text_format.ParseError as error:
        raise ModelError(
            f"model '{model}': {path.name} line {sentence_of(error).replace('Message type', 'message type')}"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"model '{model}': {path.name} cannot be read: {error}") from error
    return config


def sentence_of(error: text_format.ParseError) -> str:
    """Return what does not parse and where; of an unknown field also the one with the most similar name."""
    sentence = str(error).strip().rstrip(".")
    if unknown := _UNKNOWN_FIELD.search(sentence):
        message = proto.ModelConfig.DESCRIPTOR.file.pool.FindMessageTypeByName(unknown[1])
        if like := difflib.get_close_matches(unknown[2], message.fields_by_name, n=1):
            sentence += f"; did you mean {like[0]}?"
    return sentence.replace('"inference.', '"')


def as_json(message: Any) -> dict[str, Any]:
    """Return a message as plain values: proto names, enum names, integers as numbers, defaults written out.

    protobuf's own JSON form writes 64-bit integers as strings, which V2 clients do not expect.
    """
    fields: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        if field.has_presence and not message.HasField(field.name):
            continue
        value = getattr(message, field.name)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            fields[field.name] = {str(key): _plain(field.message_type.fields[1], value[key]) for key in value}
        elif field.is_repeated:
            fields[field.name] = [_plain(field, item) for item in value]
        else:
            fields[field.name] = _plain(field, value)
    return fields


def _plain(field: Any, value: Any) -> Any:
    if field.message_type is not None:
        return as_json(value)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return known.name if known is not None else value
    return value
