"""Programs of the local cluster: folders that hold a command, in the place of images. Pure.

A program's record, `NAME@sha256:DIGEST`, is read as an image's name is: NAME is the folder's, DIGEST that of its
content (`integrations.artifacts.programs`).
"""

import os
import re
from pathlib import Path

from common.errors import InvalidInput

SETTING = "FAIRLEAD_PROGRAM_FOLDERS"
_NAME = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*")
_RECORD = re.compile(rf"(?:{_NAME.pattern})@sha256:[0-9a-f]{{64}}")
_LONGEST = 1000


def check_working_dir(path: str, *, field: str) -> str:
    """Return a program's folder as a file names it; raises InvalidInput for what cannot be one."""
    if not path.startswith("/") or path.startswith("//") or os.path.normpath(path) != path or "\0" in path:
        raise InvalidInput(
            f"{field} is {path[:200]!r}; expected an absolute path without . and .., such as /srv/programs/sentiment-3",
            field=field,
        )
    if len(path) > _LONGEST or not _NAME.fullmatch(name_of(path)):
        raise InvalidInput(
            f"{field} is {path[:200]!r}; the folder's own name, which its versions get, has to be of lower-case "
            "letters and digits, with single dots, underscores and hyphens between them, such as sentiment-3",
            field=field,
        )
    return path


def check_record(record: str, *, field: str) -> str:
    """Return the record of a program; raises InvalidInput for what is none, such as an image."""
    if not _RECORD.fullmatch(record):
        raise InvalidInput(
            f"{field} is {record[:200]!r}, and workingDir names the folder of a program: an image is for Kubernetes, a "
            "program for the local cluster; leave out one of them",
            field=field,
        )
    return record


def name_of(working_dir: str) -> str:
    """Return the name of a program's folder."""
    return working_dir.rpartition("/")[2]


def record_of(working_dir: str, digest: str) -> str:
    """Return the record of a program whose content has the digest, `sha256:…`."""
    return f"{name_of(working_dir)}@{digest}"


def parse_folders(text: str) -> tuple[Path, ...]:
    """Return the folders of programs from the setting's text, separated by colons; raises InvalidInput."""
    found = [part.strip() for part in text.split(":") if part.strip()]
    for path in found:
        if not path.startswith("/") or path.strip("/") == "" or os.path.normpath(path) != path.rstrip("/"):
            raise InvalidInput(
                f"{SETTING} has {path[:200]!r}; expected absolute paths of folders below the root, without . and .., "
                "separated by colons, such as /srv/programs"
            )
    return tuple(dict.fromkeys(Path(path) for path in found))
