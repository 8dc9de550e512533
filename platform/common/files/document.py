"""Document reader: validates a parsed JSON or YAML file field by field. Pure.

An error is a sentence with the field's dotted name; unknown fields are refused, never ignored.
`parse_document` collects the faults of a whole file; a `Document` made otherwise raises the first one:
    wrong field     recorded, its default (or a neutral value) goes on in its place
    wrong part      `attempt`, `part` and `each` record the error of the part's parser and go on behind it
    relation        a rule about several fields is checked where it `is_sound`: only of fields that are right
    within a fault  nothing is reported of what lies in a part that is wrong itself
"""

import difflib
import math
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Any, ParamSpec, TypeVar, cast

from common import durations
from common.errors import InvalidInput

E = TypeVar("E", bound=StrEnum)
P = ParamSpec("P")
T = TypeVar("T")
D = TypeVar("D")
MOST_FAULTS = 20
"""Faults of a file that an error names; it counts the others."""
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


class Faults:
    """The faults of one file, in the order in which its parser found them."""

    def __init__(self) -> None:
        self._found: list[InvalidInput] = []
        self._further = 0

    def add(self, error: InvalidInput) -> None:
        """Record an error, unless its field, or a part that the field lies in, has one already."""
        if any(_within(error.field, other.field) for other in self._found if other.field is not None):
            return
        if len(self._found) < MOST_FAULTS:
            self._found.append(error)
        else:
            self._further += 1

    def touch(self, part: str) -> bool:
        """Return whether a part has a fault, or lies in one that has; the empty part is the whole file."""
        fields = [error.field for error in self._found]
        return any(not part or field is None or _within(field, part) or _within(part, field) for field in fields)

    def raise_any(self, what: str) -> None:
        """Raise the only fault, or one InvalidInput whose `details` are a sentence for each; nothing without any."""
        if not self._found:
            return
        first = self._found[0]
        if len(self._found) == 1:
            raise first
        further = [f"and {self._further} more"] if self._further else []
        raise InvalidInput(
            f"{what} has {len(self._found) + self._further} faults; the first: {first.message}",
            field=first.field,
            details=[*map(_line, self._found), *further],
        )


def _within(field: str | None, part: str) -> bool:
    """Return whether `field` is the part, or lies in it."""
    return field is not None and (field == part or field.startswith((f"{part}.", f"{part}[")))


def _line(error: InvalidInput) -> str:
    """Return the sentence of a fault, which names its field."""
    named = error.field is None or error.field in error.message
    return error.message if named else f"{error.field}: {error.message}"


def parse_document(value: object, what: str, parse: Callable[["Document"], T]) -> T:
    """Return what `parse` makes of a file, called `what` in errors.

    Raises:
        InvalidInput: with one sentence and the dotted name of the field at fault; of several faults it names the first,
            and `details` has a sentence for each.
    """
    faults = Faults()
    document = Document.of(value, what, faults=faults)
    result = document.attempt(None, parse, document)
    faults.raise_any(what)
    return cast(T, result)


class Document:
    """One object of the file; records which of its fields were read.

    Args:
        faults: collects what is wrong; without it the first fault is raised.
    """

    def __init__(self, fields: Mapping[str, object], prefix: str = "", faults: Faults | None = None) -> None:
        self._fields = fields
        self.prefix = prefix
        self._faults = faults
        self._read: set[str] = set()

    @classmethod
    def of(cls, value: object, what: str, prefix: str = "", faults: Faults | None = None) -> "Document":
        """Return the document in `value`; errors call it `what`."""
        if not isinstance(value, Mapping):
            raise InvalidInput(
                f"{what} is {kind_of(value)}; expected an object with named fields", field=prefix or None
            )
        for odd in (key for key in value if not isinstance(key, str)):
            raise InvalidInput(f"{what} has the field name {str(odd)[:60]}, which is no text", field=prefix or None)
        return cls(value, prefix, faults)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of all fields."""
        return tuple(self._fields)

    def is_sound(self, name: str = "") -> bool:
        """Return whether no fault was found yet in the field `name`, by default in this whole object."""
        return self._faults is None or not self._faults.touch(self.path(name) if name else self.prefix)

    def report(self, error: InvalidInput) -> None:
        """Record an error, or raise it where nothing collects them."""
        if self._faults is None:
            raise error
        self._faults.add(error)

    def fault(self, name: str, what: str) -> None:
        """Report that the field `name` `what`, the rest of a sentence."""
        self.report(InvalidInput(f"{self.path(name)} {what}", field=self.path(name)))

    def attempt(self, default: D, parse: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | D:
        """Return what `parse` returns; `default`, with its error reported, where it raises InvalidInput."""
        try:
            return parse(*args, **kwargs)
        except InvalidInput as error:
            self.report(error)
            return default

    def path(self, name: str) -> str:
        """Return the dotted name of the field `name`."""
        return f"{self.prefix}.{name}" if self.prefix else name

    def raw(self, name: str, default: object = _MISSING) -> Any:
        """Return the raw field; a null field counts as missing."""
        self._read.add(name)
        value = self._fields.get(name)
        if value is not None:
            return value
        if default is _MISSING:
            self.fault(name, "is missing")
            return None
        return default

    def text(self, name: str, default: str | None = _MISSING, check: Callable[..., str] | None = None) -> str:
        """Return the field as text; a `default` of None makes it required.

        Args:
            check: returns the text as it is to be used, and raises InvalidInput; is given the text and `field`.
        """
        value = self.raw(name, _MISSING if default is None else default)
        if not isinstance(value, str):
            self._wrong(name, value, "a text")
            return ""
        return value if check is None else self.attempt(value, check, value, field=self.path(name))

    def choice(self, name: str, choices: type[E], default: E) -> E:
        """Return the field as one of an enumeration."""
        value = self.raw(name, default)
        if value not in list(choices):
            self._wrong(name, value, " or ".join(choice.value for choice in choices))
            return default
        return choices(value)

    def flag(self, name: str, default: bool) -> bool:
        """Return the field as a truth value."""
        value = self.raw(name, default)
        if not isinstance(value, bool):
            self._wrong(name, value, "true or false")
            return default
        return value

    def integer(self, name: str, *, minimum: int, maximum: int, default: int = _MISSING) -> int:
        """Return the field as a whole number within bounds."""
        value = self.raw(name, default)
        whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        if isinstance(value, bool) or not whole or not minimum <= value <= maximum:
            self._wrong(name, value, f"a whole number from {minimum} to {maximum}")
            return minimum if default is _MISSING else default
        return int(value)

    def number(self, name: str, *, minimum: float, maximum: float, default: float = _MISSING) -> float:
        """Return the field as a number within bounds."""
        value = self.raw(name, default)
        usable = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        if not usable or not minimum <= value <= maximum:
            self._wrong(name, value, f"a number from {minimum:g} to {maximum:g}")
            return minimum if default is _MISSING else default
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
            return default
        try:
            duration = durations.parse(value, field=self.path(name))
        except InvalidInput as error:
            self.report(InvalidInput(f"{self.path(name)}: {error.message}", field=self.path(name)))
            return default
        if duration > _LONGEST or (positive and not duration):
            self._wrong(name, value, f"a duration {'above 0' if positive else 'from 0'} and up to a year")
            return default
        return duration

    def document(self, name: str, read: Callable[[Any], object] = lambda value: value) -> "Document":
        """Return the object under `name`; `read` makes it of the field, such as of a text."""
        value = self.attempt(None, read, self.raw(name))
        return Document({}, self.path(name), self._faults) if value is None else self._of(value, self.path(name))

    def optional(self, name: str) -> "Document | None":
        """Return the object under `name`, None where it is missing."""
        value = self.raw(name, None)
        return None if value is None else self._of(value, self.path(name))

    def or_empty(self, name: str) -> "Document":
        """Return the object under `name`, an empty one where it is missing."""
        return self._of(self.raw(name, {}), self.path(name))

    def documents(self, name: str) -> list["Document"]:
        """Return the objects in the list under `name`."""
        return list(self._items(name))

    def part(self, name: str, parse: Callable[["Document"], T]) -> T | None:
        """Return what `parse` makes of the object under `name`; None where it is missing or wrong."""
        found = self.optional(name)
        return None if found is None else self.attempt(None, parse, found)

    def each(self, name: str, parse: Callable[["Document"], T]) -> tuple[T, ...]:
        """Return what `parse` makes of each object in the list under `name`, without those that are wrong."""
        parsed = [self.attempt(None, parse, item) for item in self._items(name)]
        return tuple(each for each in parsed if each is not None)

    def _items(self, name: str) -> Iterator["Document"]:
        value = self.raw(name)
        if not isinstance(value, list):
            self._wrong(name, value, "a list")
            return
        for index, item in enumerate(value):
            yield self._of(item, f"{self.path(name)}[{index}]")

    def _of(self, value: object, path: str) -> "Document":
        return self.attempt(Document({}, path, self._faults), Document.of, value, path, path, self._faults)

    def refuse_unknown(self, instead: Mapping[str, str] = MappingProxyType({})) -> None:
        """Raise InvalidInput if the object has a field that was not read.

        Args:
            instead: for fields known from other products, the equivalent here.
        """
        for unknown in sorted(set(self._fields) - self._read):
            like = difflib.get_close_matches(unknown, sorted(self._read), n=1) if unknown not in instead else ()
            did_you_mean = f"; did you mean {like[0]}?" if like else ""
            other = instead.get(unknown) or f"it knows {', '.join(sorted(self._read))}{did_you_mean}"
            self.fault(unknown, f"is not a field that Fairlead can honour here; {other}")

    def _wrong(self, name: str, value: object, expected: str) -> None:
        if value is None:
            return  # reported as missing
        shown = (
            repr(value)[:60] if isinstance(value, str | int | float) and not isinstance(value, bool) else kind_of(value)
        )
        self.fault(name, f"is {shown}; expected {expected}")
