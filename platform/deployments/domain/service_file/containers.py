"""Fields that the containers of a service file share, of a companion and of a custom predictor. Pure.

A container is an image on Kubernetes, and on the local cluster a program: a command in a folder. A program has a record
in the place of its image, which the platform writes beside `workingDir` when a file is applied (`common.programs`).
"""

import re
from collections.abc import Callable

from common.errors import InvalidInput
from common.files.document import Document
from common.programs import check_record, check_working_dir

_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,499}")
_MAX_WORDS = 100
_WORKING_DIR = "workingDir"


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


def is_program(container: Document) -> bool:
    """Return whether a container is a program of the local cluster."""
    return container.raw(_WORKING_DIR, None) is not None


def parse_source(container: Document, check: Callable[..., str] = check_image) -> tuple[str, str]:
    """Return the image of a container and "", or the record of a program, empty without one, and its folder.

    Args:
        check: of an image's name.
    """
    if not is_program(container):
        return container.text("image", check=check), ""
    if container.raw("ports", None) is not None:
        container.fault(
            "ports",
            "cannot be honoured with workingDir: the platform chooses the port of a program, and gives it as the "
            "variable PORT; leave it out",
        )
    if not container.raw("command", []):
        container.fault("command", "is missing; a program is a command in its folder, such as [python3, serve.py]")
    has_record = container.raw("image", None) is not None
    record = container.text("image", check=check_record) if has_record else ""
    return record, container.text(_WORKING_DIR, check=check_working_dir)


def source_json(image: str, working_dir: str) -> dict[str, str]:
    """Return image, or record and folder, as a container has them."""
    named = {"image": image} if image else {}
    return {**named, _WORKING_DIR: working_dir} if working_dir else named
