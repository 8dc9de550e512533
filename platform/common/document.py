"""Document reader: validates a parsed JSON or YAML file field by field. Pure.

Every error is one sentence with the field's dotted name, and an unknown field is refused, never ignored.
"""

import math
from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Any, TypeVar

from common import durations
from common.errors import InvalidInput

E = TypeVar("E", bound=StrEnum)
_MISSING: Any = object()
_LONGEST = timedelta(days=365)
_KINDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "an object",
}


def kind_of(value: object) -> str:
    """Return what `value` is, in words."""
    return "nothing" if value is None else _KINDS.get(type(value), f"a {type(value).__name__}")


class Document:
    """One object of the file; records which of its fields were read."""

    def __init__(self, fields: Mapping[str, object], prefix: str = "") -> None:
        self._fields = fields
        self._prefix = prefix
        self._read: set[str] = set()

    @classmethod
    def of(cls, value: object, what: str, prefix: str = "") -> "Document":
        """Return the document in `value`; errors call it `what`."""
        if not isinstance(value, Mapping):
            raise InvalidInput(
                f"{what} is {kind_of(value)}; expected an object with named fields", field=prefix or None
            )
        for odd in (key for key in value if not isinstance(key, str)):
            raise InvalidInput(f"{what} has the field name {str(odd)[:60]}, which is no text", field=prefix or None)
        return cls(value, prefix)

    def path(self, name: str) -> str:
        """Return the dotted name of the field `name`."""
        return f"{self._prefix}.{name}" if self._prefix else name

    def raw(self, name: str, default: object = _MISSING) -> Any:
        """Return the raw field; a null field counts as missing."""
        self._read.add(name)
        value = self._fields.get(name)
        if value is not None:
            return value
        if default is _MISSING:
            raise InvalidInput(f"{self.path(name)} is missing", field=self.path(name))
        return default

    def text(self, name: str, default: str | None = _MISSING) -> str:
        """Return the field as text; a `default` of None makes it required."""
        value = self.raw(name, _MISSING if default is None else default)
        return value if isinstance(value, str) else self._wrong(name, value, "a text")

    def choice(self, name: str, choices: type[E], default: E) -> E:
        """Return the field as one of an enumeration."""
        value = self.raw(name, default)
        if value not in list(choices):
            self._wrong(name, value, " or ".join(choice.value for choice in choices))
        return choices(value)

    def flag(self, name: str, default: bool) -> bool:
        """Return the field as a truth value."""
        value = self.raw(name, default)
        return value if isinstance(value, bool) else self._wrong(name, value, "true or false")

    def integer(self, name: str, *, minimum: int, maximum: int, default: int = _MISSING) -> int:
        """Return the field as a whole number within bounds."""
        value = self.raw(name, default)
        whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        if isinstance(value, bool) or not whole or not minimum <= value <= maximum:
            self._wrong(name, value, f"a whole number from {minimum} to {maximum}")
        return int(value)

    def number(self, name: str, *, minimum: float, maximum: float, default: float = _MISSING) -> float:
        """Return the field as a number within bounds."""
        value = self.raw(name, default)
        usable = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        if not usable or not minimum <= value <= maximum:
            self._wrong(name, value, f"a number from {minimum:g} to {maximum:g}")
        return float(value)

    def optional_number(self, name: str, *, minimum: float, maximum: float, default: float) -> float | None:
        """Return the field as a number, `default` where it is missing, and None where it is null: switched off."""
        if name in self._fields and self._fields[name] is None:
            self._read.add(name)
            return None
        return self.number(name, minimum=minimum, maximum=maximum, default=default)

    def duration(self, name: str, *, default: timedelta, positive: bool = False) -> timedelta:
        """Return the field as a duration of at most a year."""
        value = self.raw(name, default)
        if isinstance(value, timedelta):
            return value
        if not isinstance(value, str):
            self._wrong(name, value, "a duration such as 10s or 1m30s")
        try:
            duration = durations.parse(value, field=self.path(name))
        except InvalidInput as error:
            raise InvalidInput(f"{self.path(name)}: {error.message}", field=self.path(name)) from error
        if duration > _LONGEST or (positive and not duration):
            self._wrong(name, value, f"a duration {'above 0' if positive else 'from 0'} and up to a year")
        return duration

    def document(self, name: str) -> "Document":
        """Return the object under `name`."""
        return Document.of(self.raw(name), self.path(name), self.path(name))

    def optional(self, name: str) -> "Document | None":
        """Return the object under `name`, None where it is missing."""
        value = self.raw(name, None)
        return None if value is None else Document.of(value, self.path(name), self.path(name))

    def documents(self, name: str) -> list["Document"]:
        """Return the objects in the list under `name`."""
        value = self.raw(name)
        if not isinstance(value, list):
            self._wrong(name, value, "a list")
        return [
            Document.of(item, f"{self.path(name)}[{index}]", f"{self.path(name)}[{index}]")
            for index, item in enumerate(value)
        ]

    def refuse_unknown(self, instead: Mapping[str, str] = MappingProxyType({})) -> None:
        """Raise InvalidInput if the object has a field that was not read.

        Args:
            instead: for fields known from other products, the equivalent here.
        """
        if unknown := sorted(set(self._fields) - self._read):
            other = instead.get(unknown[0]) or f"it knows {', '.join(sorted(self._read))}"
            raise InvalidInput(
                f"{self.path(unknown[0])} is not a field that Fairlead can honour here; {other}",
                field=self.path(unknown[0]),
            )

    def _wrong(self, name: str, value: object, expected: str) -> Any:
        shown = (
            repr(value)[:60] if isinstance(value, str | int | float) and not isinstance(value, bool) else kind_of(value)
        )
        raise InvalidInput(f"{self.path(name)} is {shown}; expected {expected}", field=self.path(name))
