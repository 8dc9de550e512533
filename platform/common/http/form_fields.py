"""Fields of forms: checked numbers."""

from django.http import HttpRequest

from common.errors import InvalidInput


def whole_number(request: HttpRequest, name: str, *, least: int = 0, most: int) -> int | None:
    """Return the number in a field, None for an empty one; raises InvalidInput."""
    text = request.POST.get(name, "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and least <= int(text) <= most):
        raise InvalidInput(
            f"{name} is {text[:40]!r}; expected a whole number from {least} to {most}, or nothing", field=name
        )
    return int(text)
