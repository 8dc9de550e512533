"""Hooks: functions that a room registers with one below it, which cannot import it."""

from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar

from django.utils.module_loading import import_string

P = ParamSpec("P")
R = TypeVar("R")


class Hook(Generic[P, R]):
    """Functions that are called together, in their order of registration."""

    def __init__(self) -> None:
        self._functions: list[Callable[P, R]] = []

    def register(self, function: Callable[P, R]) -> None:
        """Register `function`; idempotent."""
        if function not in self._functions:
            self._functions.append(function)

    def unregister(self, function: Callable[P, R]) -> None:
        """Unregister `function`."""
        self._functions.remove(function)

    def __call__(self, *arguments: P.args, **named: P.kwargs) -> list[R]:
        """Return what each function returns."""
        return [function(*arguments, **named) for function in self._functions]


def imported_later(path: str) -> Callable[..., Any]:
    """Return the function at `path`, imported on its first call: commands that only migrate need none of them."""

    def call(*arguments: Any) -> Any:
        return import_string(path)(*arguments)

    return call
