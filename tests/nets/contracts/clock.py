"""What a module reads of clock and randomness itself.

The database's own clock (`Now`) is not counted: it orders what statements of several processes wrote.
"""

import ast
from collections.abc import Iterator
from functools import cache

from tests.nets._support.modules import modules, tree

WHOLE = frozenset({"time", "random", "secrets"})
"""Modules of which everything counts."""
NAMED = frozenset(
    {
        "datetime.datetime.now",
        "datetime.datetime.today",
        "datetime.datetime.utcnow",
        "datetime.date.today",
        "django.utils.timezone.now",
        "django.utils.timezone.localtime",
        "os.urandom",
        "uuid.uuid1",
        "uuid.uuid4",
        "uuid.uuid7",
    }
)
HARMLESS = frozenset(
    {
        "random.Random",  # gives the same numbers for the same seed
        "secrets.compare_digest",
        "time.gmtime",
        "time.strftime",
        "time.strptime",
        "time.struct_time",
    }
)
_WORDS = ("time", "random", "secrets", "uuid")


@cache
def reads(name: str) -> frozenset[str]:
    """Return what a module reads, by full names such as `time.monotonic`; a function given as a default counts too."""
    if not any(word in modules()[name].text for word in _WORDS):
        return frozenset()
    return frozenset(full for full in _used(tree(name)) if _is_reading(full))


def _is_reading(full: str) -> bool:
    return full not in HARMLESS and (full in NAMED or (full.count(".") == 1 and full.partition(".")[0] in WHOLE))


def _used(module: ast.Module) -> Iterator[str]:
    """Yield the full names of what a module uses of others."""
    bound = dict(_bound(module))
    for node in ast.walk(module):
        root, _, rest = _dotted(node).partition(".")
        if root in bound:
            yield ".".join(filter(None, [bound[root], rest]))


def _dotted(node: ast.AST) -> str:
    """Return `a.b.c` for a chain that begins with a name, else nothing."""
    words: list[str] = []
    while isinstance(node, ast.Attribute):
        words.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(words)]) if isinstance(node, ast.Name) else ""


def _bound(module: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield each imported name with its full name."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            for each in node.names:
                yield (each.asname, each.name) if each.asname else (each.name.partition(".")[0],) * 2
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((each.asname or each.name, f"{node.module}.{each.name}") for each in node.names)
