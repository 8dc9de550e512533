"""Numbers in HTML forms, whose fields are texts."""

from collections.abc import Mapping
from math import isfinite

from common.errors import InvalidInput


def number(said: Mapping[str, str], name: str, default: float, *, called: str) -> float:
    """Return a field's number, `default` where it is empty.

    Args:
        called: the field's label in the error message.

    Raises:
        InvalidInput: it is no finite number.
    """
    text = said.get(name, "").strip().replace(",", ".")
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not isfinite(value):
        raise InvalidInput(f"{called} is {text[:40]!r}; expected a number", field=name)
    return value


def whole(said: Mapping[str, str], name: str, default: int, *, called: str) -> int:
    """Return a field's whole number, `default` where it is empty; raises InvalidInput as `number`."""
    value = number(said, name, default, called=called)
    if value != int(value):
        raise InvalidInput(f"{called} is {value:g}; expected a whole number", field=name)
    return int(value)
