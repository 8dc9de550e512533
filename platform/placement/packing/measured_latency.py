"""How long a version takes to answer on the GPUs and slices on which it was measured. Pure.

Nothing is said of others: how latency follows the size of a slice differs from model to model.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from placement.slices.offers import Offer


@dataclass(frozen=True, slots=True)
class LatencyTarget:
    """How long a batch may take to be answered, at the 99th percentile, by a model that has nothing else to do."""

    p99_ms: float
    batch_size: int = 1

    def __str__(self) -> str:
        """Return it as a part of a sentence."""
        return f"{self.p99_ms:g} ms (p99) for a batch of {self.batch_size}"


@dataclass(frozen=True, slots=True)
class Timing:
    """What was measured on one kind of slice.

    Attributes:
        board: the product as the nodes' label `nvidia.com/gpu.product` has it without its slices.
        profile: of the MIG slice; empty for a whole GPU.
        p99_ms: by batch size.
    """

    board: str
    profile: str
    p99_ms: Mapping[int, float]


def timings(profile: Mapping[str, Any]) -> Iterator[Timing]:
    """Yield what a version's stored profile says of GPUs; what ran on a CPU after all, or failed, is left out."""
    for measured in profile.get("on", ()):
        device = measured.get("device", {})
        if device.get("kind") == "gpu":
            # GPU Feature Discovery makes its label of NVML's name so.
            board = str(device["name"]).replace(" ", "-")
            times = {int(each["batch_size"]): each["latency_p99_us"] / 1000 for each in measured["batches"]}
            yield Timing(board, str(device["mig_profile"]), times)


def takes_ms(measured: Sequence[Timing], offer: Offer, batch_size: int) -> float | None:
    """Return how long a batch, or the next larger one that was measured, takes on what a node offers; None: unknown."""
    board = offer.label.removesuffix("-SHARED").partition("-MIG-")[0]
    for timing in measured:
        sizes = [size for size in timing.p99_ms if size >= batch_size]
        if sizes and (timing.board, timing.profile) == (board, offer.profile):
            return timing.p99_ms[min(sizes)]
    return None
