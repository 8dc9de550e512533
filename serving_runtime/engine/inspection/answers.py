"""Answers of `inspect` and `profile` as exit code and document: 0 with the result, 2 with an error."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from serving_runtime.common.errors import ServingError, is_of_installation
from serving_runtime.engine.inspection import model
from serving_runtime.engine.loading.settings import LoadSettings

REFUSED = 2

QUESTIONS: dict[str, tuple[Callable[[Path, LoadSettings], dict[str, Any]], str]] = {
    "inspect": (model.inspect, model.INSPECT_SCHEMA),
    "profile": (model.profile, model.PROFILE_SCHEMA),
}
"""Function and schema of each question, by its name."""


def answer(question: str, folder: Path, settings: LoadSettings) -> tuple[int, dict[str, Any]]:
    """Return exit code and document of one question about the model in `folder`."""
    ask, schema = QUESTIONS[question]
    try:
        return 0, ask(folder, settings)
    except ServingError as error:
        found: dict[str, Any] = {"schema": schema, "error": str(error)}
        if is_of_installation(error):
            found["of_installation"] = True
        return REFUSED, found
