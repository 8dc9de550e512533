"""Paths of a structural difference: `spec.containers[runtime].env[NAME]."a key with.dots"`.

A field of a map is a word after a dot, in quotes where it has more than word characters; an entry of a list is its
key in brackets, in quotes where it has a bracket or a quote.
"""

import json
import re

_PLAIN_FIELD = re.compile(r"[\w@$-]+", re.ASCII)
_PLAIN_ENTRY = re.compile(r'[^\[\]"]*')
_TEXT = r'"(?:[^"\\]|\\.)*"'
_SEGMENT = re.compile(rf'\.?(?P<field>{_TEXT}|[^.\[\]"]+)|\[(?P<entry>{_TEXT}|[^\[\]"]*)\]')

Segment = tuple[str, str]  # ("field" or "entry", its name or key)


def field(name: str) -> str:
    """Return the path of a map's field."""
    return name if _PLAIN_FIELD.fullmatch(name) else json.dumps(name)


def entry(key: str) -> str:
    """Return the path of a list's entry."""
    return f"[{key if _PLAIN_ENTRY.fullmatch(key) else json.dumps(key)}]"


def joined(path: str, below: str) -> str:
    """Return the path of what is `below` at `path`."""
    return f"{path}.{below}" if path and below and not below.startswith("[") else path + below


def parsed(path: str) -> list[Segment]:
    """Return the segments of a path; raises ValueError where it is not one."""
    found, place = [], 0
    while place < len(path):
        match = _SEGMENT.match(path, place)
        if match is None:
            raise ValueError(f"{path!r} is no path: {path[place:]!r} is neither a field nor an entry in brackets")
        kind = "field" if match["field"] is not None else "entry"
        text = match[kind]
        found.append((kind, json.loads(text) if text.startswith('"') else text))
        place = match.end()
    return found
