"""Backend parameters: a model's `parameters` of config.pbtxt over the backend's --backend-config settings."""

from collections.abc import Collection, Mapping

from serving_runtime.common.errors import ModelError

_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}


class Parameters:
    """The parameters of one model, read by name; unknown ones are refused at once."""

    def __init__(self, backend: str, values: Mapping[str, str], known: Collection[str]) -> None:
        """Raise ModelError for the first parameter that is not `known`."""
        for key in values:
            if key not in known:
                raise ModelError(
                    f"parameter '{key}' is unknown to the {backend} backend; known are {', '.join(sorted(known))}"
                )
        self._values = values

    def number(self, key: str, default: int, lowest: int, highest: int) -> int:
        value = self._values.get(key, str(default)).strip()
        if not value.isascii() or not value.isdigit() or not lowest <= int(value) <= highest:
            raise ModelError(f"parameter '{key}' must be a number from {lowest} to {highest}, found '{value}'")
        return int(value)

    def real(self, key: str, default: float) -> float:
        value = self._values.get(key, str(default))
        try:
            return float(value)
        except ValueError as error:
            raise ModelError(f"parameter '{key}' must be a number, found '{value}'") from error

    def boolean(self, key: str, *, default: bool) -> bool:
        value = self._values.get(key, str(default))
        found = _BOOLEANS.get(value.strip().lower())
        if found is None:
            raise ModelError(f"parameter '{key}' must be true or false, found '{value}'")
        return found

    def choice(self, key: str, default: str, choices: Collection[str]) -> str:
        value = self._values.get(key, default)
        if value not in choices:
            raise ModelError(f"parameter '{key}' must be one of {', '.join(choices)}, found '{value}'")
        return value


def merged(
    backend: str, settings: Mapping[str, str], parameters: Mapping[str, str], known: Collection[str]
) -> Parameters:
    """Return the parameters of a model, over those of --backend-config."""
    return Parameters(backend, {**settings, **parameters}, known)


def one_line(error: BaseException, most: int = 500) -> str:
    """Return the message of a library's exception, on one line, without the stack of its native code."""
    text = str(error).partition("\nStack trace:")[0]
    return " ".join(text.split())[:most] or type(error).__name__


def backend_settings(
    backend: str, settings: Mapping[str, str], known: Collection[str], default_max_batch_size: int
) -> tuple[int, dict[str, str]]:
    """Return --backend-config=BACKEND,default-max-batch-size, and the settings that are defaults of parameters.

    Raises ModelError for a setting that is not `known`.
    """
    for key in settings:
        if key not in (known := sorted({*known, "default-max-batch-size"})):
            raise ModelError(f"--backend-config={backend},{key}: unknown setting; known are {', '.join(known)}")
    others = dict(settings)
    size = others.pop("default-max-batch-size", str(default_max_batch_size))
    if not size.isdecimal():
        raise ModelError(f"--backend-config={backend},default-max-batch-size must be a number, found '{size}'")
    return int(size), others
