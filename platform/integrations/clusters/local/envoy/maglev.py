"""Envoy's Maglev table: which replica of a pool gets a model's requests. Pure.

The hash of the model's name picks a place in a table, which replicas have filled in turns, each by a permutation of its
own (Eisenbud and others: Maglev, NSDI 2016), in the order of their addresses. A test compares this with a real Envoy.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

TABLE_SIZE = 65_537  # Envoy's default
_MASK = 2**64 - 1
_P1, _P2, _P3, _P4, _P5 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)


def xxh64(data: bytes, seed: int = 0) -> int:
    """Return xxHash64 of some bytes (its specification, version 0.1.1)."""
    length, at = len(data), 0
    if length >= 32:
        lanes = [(seed + _P1 + _P2) & _MASK, (seed + _P2) & _MASK, seed, (seed - _P1) & _MASK]
        while at <= length - 32:
            for lane in range(4):
                lanes[lane] = _round(lanes[lane], int.from_bytes(data[at : at + 8], "little"))
                at += 8
        found = sum(_rotated(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
        for lane in lanes:
            found = ((found ^ _round(0, lane)) * _P1 + _P4) & _MASK
    else:
        found = (seed + _P5) & _MASK
    found = (found + length) & _MASK
    while at <= length - 8:
        found ^= _round(0, int.from_bytes(data[at : at + 8], "little"))
        found = (_rotated(found, 27) * _P1 + _P4) & _MASK
        at += 8
    if at <= length - 4:
        found ^= (int.from_bytes(data[at : at + 4], "little") * _P1) & _MASK
        found = (_rotated(found, 23) * _P2 + _P3) & _MASK
        at += 4
    for byte in data[at:]:
        found ^= (byte * _P5) & _MASK
        found = (_rotated(found, 11) * _P1) & _MASK
    found = ((found ^ (found >> 33)) * _P2) & _MASK
    found = ((found ^ (found >> 29)) * _P3) & _MASK
    return found ^ (found >> 32)


def table(replicas: Sequence[str], size: int = TABLE_SIZE) -> "array[int]":
    """Return the number of the replica at each place of the table.

    Args:
        replicas: their addresses as Envoy writes them, such as "127.0.0.1:8000"; all have the same weight.
    """
    found = array("i", [-1]) * size
    turns = [
        _Turn(number, xxh64(address.encode()) % size, xxh64(address.encode(), 1) % (size - 1) + 1)
        for address, number in sorted((address, number) for number, address in enumerate(replicas))
    ]
    filled = 0
    while filled < size:
        for turn in turns[: size - filled]:
            while found[turn.place] >= 0:
                turn.place = (turn.place + turn.skip) % size
            found[turn.place] = turn.replica
            filled += 1
    return found


@lru_cache(maxsize=64)
def _kept(replicas: tuple[str, ...], size: int) -> "array[int]":
    return table(replicas, size)


def chosen(replicas: Sequence[str], hashed: bytes, size: int = TABLE_SIZE) -> int:
    """Return the number of the replica that gets what is hashed; the table of the same replicas is made once."""
    return _kept(tuple(replicas), size)[xxh64(hashed) % size]


@dataclass(slots=True)
class _Turn:
    """A replica's place in its permutation of the table."""

    replica: int
    place: int
    skip: int


def _round(lane: int, value: int) -> int:
    return (_rotated((lane + value * _P2) & _MASK, 31) * _P1) & _MASK


def _rotated(value: int, by: int) -> int:
    return ((value << by) | (value >> (64 - by))) & _MASK
