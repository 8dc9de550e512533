"""Pairing of recorded exchanges of stable and of the shadow by request id. Pure.

A copy has the id of the client's request, so both sides received the same id. Halves come in any order and at different
times; one without a counterpart waits, in bounded memory and for a bounded time, and then counts as alone. Most of
stable's are: only a share of the requests is copied. Clients may use an id twice; such halves are paired in their
order, and the comparison checks that the requests themselves are the same.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from integrations.clusters.base import Exchange

WAITS_S = 30.0
"""A half is alone once a half that is this much later was read."""

MOST_WAITING = 500
MOST_WAITING_BYTES = 4 * 2**20
_NUMBER_BYTES = 12


@dataclass(frozen=True, slots=True)
class Waiting:
    """Halves that may still find their counterpart, and how many did not.

    Attributes:
        stable, shadow: the oldest first.
        stable_alone, shadow_alone: given up so far.
        newest: Unix seconds of the latest exchange seen.
    """

    stable: tuple[Exchange, ...] = ()
    shadow: tuple[Exchange, ...] = ()
    stable_alone: int = 0
    shadow_alone: int = 0
    newest: float = 0.0


@dataclass(frozen=True, slots=True)
class Pair:
    """Both exchanges of one request."""

    stable: Exchange
    shadow: Exchange


@dataclass(slots=True)
class _Side:
    """The halves of one side by request id, those of one id in their order."""

    by_id: dict[str, list[Exchange]] = field(default_factory=dict)

    @classmethod
    def of(cls, exchanges: Iterable[Exchange]) -> "_Side":
        side = cls()
        for exchange in sorted(exchanges, key=lambda each: each.at):
            side.by_id.setdefault(exchange.request_id, []).append(exchange)
        return side

    def take(self, request_id: str) -> Exchange:
        first, *rest = self.by_id.pop(request_id)
        if rest:
            self.by_id[request_id] = rest
        return first

    def left(self) -> list[Exchange]:
        return sorted(chain.from_iterable(self.by_id.values()), key=lambda each: each.at)


def join(
    waiting: Waiting, exchanges: Sequence[Exchange], *, stable: str, shadow: str
) -> tuple[Waiting, tuple[Pair, ...]]:
    """Return the halves that still wait, and the pairs that are complete now, by the time of stable's half.

    Args:
        exchanges: newly read; those of other revisions than `stable` and `shadow` are left out.
    """
    seen = {
        name: [each for each in exchanges if each.revision == name and each.request_id] for name in (stable, shadow)
    }
    ours, theirs = _Side.of((*waiting.stable, *seen[stable])), _Side.of((*waiting.shadow, *seen[shadow]))
    pairs: list[Pair] = []
    for request_id in list(ours.by_id):
        while request_id in ours.by_id and request_id in theirs.by_id:
            pairs.append(Pair(ours.take(request_id), theirs.take(request_id)))
    newest = max((each.at for each in chain(*seen.values())), default=waiting.newest)
    newest = max(newest, waiting.newest)
    stable_left, stable_alone = _bounded(ours.left(), newest)
    shadow_left, shadow_alone = _bounded(theirs.left(), newest)
    after = Waiting(
        stable_left,
        shadow_left,
        waiting.stable_alone + stable_alone,
        waiting.shadow_alone + shadow_alone,
        newest,
    )
    return after, tuple(sorted(pairs, key=lambda pair: (pair.stable.at, pair.stable.request_id)))


def _bounded(halves: Sequence[Exchange], newest: float) -> tuple[tuple[Exchange, ...], int]:
    """Return the newest halves that may continue to wait, oldest first, and how many were given up."""
    kept: list[Exchange] = []
    held_bytes = 0
    for half in reversed(halves):
        held_bytes += _size_bytes(half)
        if held_bytes > MOST_WAITING_BYTES or len(kept) == MOST_WAITING or half.at < newest - WAITS_S:
            break
        kept.append(half)
    return tuple(reversed(kept)), len(halves) - len(kept)


def _size_bytes(half: Exchange) -> int:
    """Return about how many bytes a half takes as JSON."""
    data = [
        tensor.get("data")
        for tensors in (half.request.get("inputs"), half.response.get("outputs"))
        for tensor in (tensors if isinstance(tensors, list) else ())
        if isinstance(tensor, Mapping)
    ]
    elements = chain.from_iterable(each for each in data if isinstance(each, list))
    return 1000 + sum(len(element) if isinstance(element, str) else _NUMBER_BYTES for element in elements)


def alone(waiting: Waiting) -> Mapping[str, int]:
    """Return how many requests have only one side so far, given up or waiting, by side."""
    return {
        "stable": waiting.stable_alone + len(waiting.stable),
        "shadow": waiting.shadow_alone + len(waiting.shadow),
    }
