"""How long another client waits while clients without any rights attack a serving runtime, and what memory that takes.

    python -m benchmarks.flood

Starts a server on this machine, carries the attacks of attacks.py out one after the other, with a probe beside each,
and prints a table. Takes less than three minutes.
"""

import asyncio
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from benchmarks.flood import attacks
from benchmarks.flood.attacks import Answers, Target
from benchmarks.flood.served import MIB, MODEL_BYTES, REQUEST_BYTES, Measured, measured, served
from benchmarks.serving.processes import run_program

_HOLD_S = 5.0
_LONG_HOLD_S = 40.0
"""Longer than a client may take to go on with what it has begun."""


async def _nothing(_target: Target) -> Answers:
    await asyncio.sleep(_HOLD_S)
    return Answers()


ATTACKS = {
    "none": _nothing,
    "40 bodies of 60 MB, all but a byte": lambda target: attacks.unfinished_bodies(
        target, clients=40, size_bytes=60_000_000, hold_s=_HOLD_S
    ),
    "8 HTTP/2 connections, 1,000 unfinished calls each": lambda target: attacks.unfinished_calls(
        target, connections=8, calls=1000, hold_s=_LONG_HOLD_S
    ),
    "400 unfinished heads": lambda target: attacks.unfinished_heads(target, clients=200, hold_s=_LONG_HOLD_S),
    "30 bodies of gzip, 2 MB, 60 MB of JSON each": lambda target: attacks.inflating_bodies(
        target, clients=30, size_bytes=60_000_000
    ),
    "JSON of 330,000 inputs": lambda target: attacks.many_inputs(target, inputs=330_000),
    "nested JSON of 60 MB": lambda target: attacks.nested_numbers(target, rows=150_000),
    "typed contents of 60 MB over gRPC": lambda target: attacks.typed_contents(target, numbers=60_000_000),
    "typed contents of 25 MB over gRPC": lambda target: attacks.typed_contents(target, numbers=25_000_000),
    "gRPC message of 10,000,000 inputs": lambda target: attacks.many_fields(target, fields=10_000_000),
    "answer of 160 MB of JSON": lambda target: attacks.large_answer(target, numbers=15_000 * 1024),
    "the same as an event": lambda target: attacks.large_answer(target, numbers=15_000 * 1024, path="infer_stream"),
    "1,024,000 classes": lambda target: attacks.large_answer(target, numbers=1000 * 1024, classes=1000 * 1024),
    "20 requests of 60 MB in shared memory": lambda target: attacks.shared_memory(
        target, clients=20, size_bytes=60_000_000
    ),
    "ONNX of 200 bytes, a tensor of 3 GB": attacks.large_tensor,
}


def lines(found: Iterable[Measured]) -> Iterator[str]:
    """Yield a table, a line for each attack."""
    yield "| attack | health, worst ms | p99 ms | inference, worst ms | failed of asked | memory grew, MiB | answers |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for each in found:
        times = " | ".join(f"{seconds * 1000:,.0f}" for seconds in (each.worst_s, each.p99_s, each.infer_worst_s))
        failed = f"{each.failures} of {2 * each.asked:,}"
        yield f"| {each.name} | {times} | {failed} | {each.grown_bytes / MIB:,.0f} | {each.answers} |"


async def _all(folder: Path) -> list[Measured]:
    found = []
    with served(folder) as (process, target):
        for name, attack in ATTACKS.items():
            found.append(await measured(name, process, target, attack(target)))
            print(f"{name}: {found[-1].worst_s:.3f} s at worst", flush=True)
    return found


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(_all(Path(folder)))
    print(f"\nmemory for requests {REQUEST_BYTES // MIB} MiB, for models {MODEL_BYTES // MIB} MiB\n")
    print("\n".join(lines(found)))


if __name__ == "__main__":
    run_program(main)
