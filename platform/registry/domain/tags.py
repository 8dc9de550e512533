"""Tags on models and versions: short texts by key, for people and for filters. Pure."""

import re
from collections.abc import Mapping

from common.errors import InvalidInput

MAX_TAGS = 50
MAX_VALUE = 1000
# A letter first: a database takes a numeric key for a list index.
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9._/-]{0,63}")


def changed(tags: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    """Return `tags` with `changes` made: a text sets the tag, None removes it (as JSON Merge Patch does).

    Raises:
        InvalidInput: a key or value is invalid, or there are too many tags.
    """
    merged = {**tags, **changes}
    for key, value in changes.items():
        _check(key, value or "")
    left = {key: value for key, value in sorted(merged.items()) if value is not None}
    if len(left) > MAX_TAGS:
        raise InvalidInput(f"these would be {len(left)} tags; at most {MAX_TAGS} are kept", field="tags")
    return left


def _check(key: str, value: str) -> None:
    if not _KEY.fullmatch(key):
        raise InvalidInput(
            f"{key[:80]!r} is no key of a tag; expected 1 to 64 letters, digits, dots, underscores, slashes and "
            "hyphens, with a letter first",
            field="tags",
        )
    if len(value) > MAX_VALUE or "\0" in value:
        raise InvalidInput(
            f"the value of the tag {key!r} has {len(value)} characters; at most {MAX_VALUE} are kept, without zeros",
            field=f"tags.{key}",
        )
