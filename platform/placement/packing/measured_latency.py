"""Measured latency of a model version on the GPUs and slices of its profile. Pure.

Nothing is extrapolated to others: how latency depends on the size of a slice differs from model to model.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from placement.slices.offers import Offer


@dataclass(frozen=True, slots=True)
class LatencyTarget:
    """Target latency of a batch at the 99th percentile, for a model under no other load."""

    p99_ms: float
    batch_size: int = 1

    def __str__(self) -> str:
        """Return it as a part of a sentence."""
        return f"{self.p99_ms:g} ms (p99) for a batch of {self.batch_size}"


@dataclass(frozen=True, slots=True)
class Timing:
    """The measurements on one kind of slice.

    Attributes:
        board: the product as in the nodes' label `nvidia.com/gpu.product`, without its slices.
        profile: of the MIG slice; empty for a whole GPU.
        p99_ms: by batch size.
    """

    board: str
    profile: str
    p99_ms: Mapping[int, float]


def timings(profile: Mapping[str, Any]) -> Iterator[Timing]:
    """Yield the GPU measurements of a version's stored profile; leave out runs that fell back to a CPU or failed."""
    for measured in profile.get("on", ()):
        device = measured.get("device", {})
        if device.get("kind") == "gpu":
            # GPU Feature Discovery derives its label from NVML's name in this way.
            board = str(device["name"]).replace(" ", "-")
            times = {int(each["batch_size"]): each["latency_p99_us"] / 1000 for each in measured["batches"]}
            yield Timing(board, str(device["mig_profile"]), times)


def takes_ms(measured: Sequence[Timing], offer: Offer, batch_size: int) -> float | None:
    """Return the latency of a batch, or of the next larger measured one, on an offer; None where unknown."""
    board = offer.label.removesuffix("-SHARED").partition("-MIG-")[0]
    for timing in measured:
        sizes = [size for size in timing.p99_ms if size >= batch_size]
        if sizes and (timing.board, timing.profile) == (board, offer.profile):
            return timing.p99_ms[min(sizes)]
    return None
