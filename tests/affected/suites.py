"""Which suite of the Makefile runs a test file: it is the marks of the file that say so."""

import re
from collections.abc import Callable, Sequence

Reader = Callable[[str], str | None]
_MODULE_MARK = re.compile(r"^pytestmark\s*=.*\bmark\.(cluster|browser|images|keycloak)\b", re.MULTILINE)
_CLUSTER = re.compile(r"\bmark\.cluster\b|\bdef test_\w+\([^)]*\banywhere\b")


def of_python(files: Sequence[str], read: Reader) -> list[str]:
    """Return the files of which `make test` runs anything."""
    return [
        path for path in files if not path.startswith("tests/browser/") and not _MODULE_MARK.search(read(path) or "")
    ]


def of_browser(files: Sequence[str]) -> list[str]:
    return [path for path in files if path.startswith("tests/browser/")]


def of_cluster(files: Sequence[str], read: Reader) -> list[str]:
    """Return the files of which `make test-cluster` runs anything."""
    return [path for path in files if _CLUSTER.search(read(path) or "")]
