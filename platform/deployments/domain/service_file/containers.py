"""Fields that the containers of a service file share, of a transformer and of a custom predictor. Pure."""

import re

from common.errors import InvalidInput
from common.files.document import Document

_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,499}")
_MAX_WORDS = 100


def check_image(image: str, *, field: str) -> str:
    """Return an image's name; raises InvalidInput for what is none."""
    if not _IMAGE.fullmatch(image):
        raise InvalidInput(f"{field} is {image[:80]!r}, which is no name of an image", field=field)
    return image


def parse_words(container: Document, name: str) -> tuple[str, ...]:
    """Return `command` or `args` of a container."""
    words = container.raw(name, [])
    if not isinstance(words, list) or len(words) > _MAX_WORDS or not all(isinstance(word, str) for word in words):
        container.fault(name, f"is no list of at most {_MAX_WORDS} texts")
        return ()
    return tuple(words)
