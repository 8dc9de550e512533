"""Service patterns: which services a key may call. Pure.

*               every service
team-a/*        every service of namespace team-a
team-a/fraud-*  those whose name begins so
team-a/fraud    one service, with its preview
"""

import re
from collections.abc import Iterable

from common.errors import InvalidInput

ALL = "*"
MOST = 50
_PATTERN = re.compile(r"\*|[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?/([a-z0-9][a-z0-9-]{0,62})?\*?")


def parse_patterns(found: Iterable[str], *, field: str = "services") -> tuple[str, ...]:
    """Return the patterns, each once, in their order.

    Raises:
        InvalidInput: the number of patterns is wrong, or one is no pattern.
    """
    patterns = tuple(dict.fromkeys(found))
    if not 0 < len(patterns) <= MOST:
        raise InvalidInput(f"{field} has {len(patterns)} patterns; expected 1 to {MOST}", field=field)
    for pattern in patterns:
        if not _PATTERN.fullmatch(pattern) or pattern.endswith("/"):
            raise InvalidInput(
                f"{field} has {pattern[:80]!r}; expected `*`, `<namespace>/*`, `<namespace>/<beginning>*` or "
                "`<namespace>/<service>`",
                field=field,
            )
    return patterns


def reaches(patterns: Iterable[str], namespace: str) -> bool:
    """Return whether one of the patterns includes services of the namespace."""
    return any(pattern == ALL or pattern.startswith(f"{namespace}/") for pattern in patterns)
