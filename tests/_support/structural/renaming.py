"""Which sibling an added part is most like, and which words make the one of the other.

Only the size of a difference depends on what is found here: the rest is told by the difference to the renamed sibling.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from tests._support.structural.keys import keyed

_WORD = re.compile(r"\w+(?:-\w+)*")  # `digits-00001` is one
_SMALL = 3  # values: such a part is shorter as it is
_ALIKE = 0.4  # of what both have: a part with less in common is shorter, or clearer, as it is
_OFTEN = 2  # times: what changes once is a change of its own


class Siblings:
    """The parts that an added one may be like: those of the base, and those that were added before it."""

    def __init__(self, base: Mapping[str, Any]) -> None:
        self.parts = dict(base)
        self._shapes: dict[str, Counter[tuple[str, str]]] = {}

    def most_alike(self, name: str, value: Any) -> str | None:
        """Return the key of the part that has most in common with `value`, if it is of some size.

        Of several, it is one whose key has most words of `name`.
        """
        shape = Counter(_shape(value)) if isinstance(value, dict | list) else Counter()
        if shape.total() < _SMALL:
            return None
        called = Counter(_WORD.findall(name))
        best, most = None, (_ALIKE, 0.0)
        for key, other in self.parts.items():
            if type(other) is type(value):
                common = _common(shape, self._shape(key)), _common(called, Counter(_WORD.findall(key)))
                if common > most:
                    best, most = key, common
        return best

    def _shape(self, key: str) -> Counter[tuple[str, str]]:
        if key not in self._shapes:
            self._shapes[key] = Counter(_shape(self.parts[key]))
        return self._shapes[key]


def _common(one: Counter[Any], other: Counter[Any]) -> float:
    """Return the share of what both have, rounded so that names decide between parts that are about as much alike."""
    both = one.total() + other.total()
    return round(2 * (one & other).total() / both, 1) if both else 0.0


def words(base: Any, new: Any) -> dict[str, str]:
    """Return the words of `base` that other words take the place of in `new`, more than once.

    Entries of lists often have the same keys only when the first words are replaced: hence two rounds.
    """
    first = _round(base, new)
    second = _round(renamed(base, first), new)
    both = {old: second.pop(word, word) for old, word in first.items()}
    return dict(sorted((second | both).items()))


def _round(base: Any, new: Any) -> dict[str, str]:
    votes: dict[str, Counter[str]] = {}
    for old, present in _texts(base, new):
        ours, theirs = _WORD.findall(old), _WORD.findall(present)
        if _WORD.sub("", old) == _WORD.sub("", present) and len(ours) == len(theirs):
            for one, other in zip(ours, theirs, strict=True):
                votes.setdefault(one, Counter())[other] += 1
    found = {}
    for word in sorted(votes):
        (other, count), *_ = votes[word].most_common(1)
        if other != word and other not in votes and count >= _OFTEN and 2 * count > votes[word].total():
            found[word] = other
    return found


def renamed(tree: Any, by: Mapping[str, str]) -> Any:
    """Return the tree with words replaced in all its texts, not in the names of fields."""
    if isinstance(tree, str):
        return _WORD.sub(lambda match: by.get(match[0], match[0]), tree)
    if isinstance(tree, dict):
        return {name: renamed(value, by) for name, value in tree.items()}
    return [renamed(each, by) for each in tree] if isinstance(tree, list) else tree


def _shape(tree: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield where the tree has values, and which, wherever in a list they are."""
    if isinstance(tree, dict):
        for name, value in tree.items():
            yield from _shape(value, f"{path}.{name}")
    elif isinstance(tree, list):
        for value in tree:
            yield from _shape(value, f"{path}[]")
    else:
        yield path, ""
        yield path, repr(tree)


def _texts(base: Any, new: Any) -> Iterator[tuple[str, str]]:
    """Yield the texts that are at the same place in both trees."""
    if isinstance(base, str) and isinstance(new, str):
        yield base, new
    elif isinstance(base, dict) and isinstance(new, dict):
        for name in sorted(base.keys() & new.keys()):
            yield from _texts(base[name], new[name])
    elif isinstance(base, list) and isinstance(new, list):
        if len(base) == len(new):
            pairs = list(zip(base, new, strict=True))
        else:
            ours, theirs = keyed(base), keyed(new)
            pairs = [(ours[key], theirs[key]) for key in ours if key in theirs]
        for one, other in pairs:
            yield from _texts(one, other)
