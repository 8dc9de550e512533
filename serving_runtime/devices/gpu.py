"""GPUs and MIG slices, and CUDA device enumeration: which of them a process may use. Pure.

CUDA: environment variables; NVIDIA: MIG user guide, CUDA device enumeration. Under MIG a CUDA process sees one slice,
whatever its environment names, so that several slices need as many processes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

CUDA_VISIBLE = "CUDA_VISIBLE_DEVICES"
CONTAINER_VISIBLE = "NVIDIA_VISIBLE_DEVICES"

_BY_UUID = ("GPU-", "MIG-")
_NONE = ("none", "void")


@dataclass(frozen=True, slots=True)
class Gpu:
    """A whole GPU, or one slice of a GPU in MIG mode.

    Attributes:
        uuid: `GPU-...`, or `MIG-...` of a slice.
        name: of the product.
        capability: its compute capability, as in 9.0.
        profile: of a slice, as in 1g.10gb; empty for a whole GPU.
        parent: UUID of the GPU that a slice is cut from; empty for a whole GPU.
    """

    uuid: str
    name: str
    memory_bytes: int
    capability: str = ""
    profile: str = ""
    parent: str = ""


def visible(found: Sequence[Gpu], environ: Mapping[str, str]) -> tuple[Gpu, ...]:
    """Return the GPUs and slices that the environment leaves to this process, in the order of their numbers.

    CUDA_VISIBLE_DEVICES holds numbers, UUIDs or prefixes of UUIDs; the first unknown one ends the list.
    NVIDIA_VISIBLE_DEVICES is the container runtime's: its numbers are the host's, so only its UUIDs are used.
    """
    asked = environ.get(CUDA_VISIBLE)
    if asked is not None:
        return _until_unknown(found, [entry.strip() for entry in asked.split(",")])
    given = environ.get(CONTAINER_VISIBLE, "all").strip()
    if given.lower() in _NONE:
        return ()
    named = [entry.strip() for entry in given.split(",") if entry.strip().startswith(_BY_UUID)]
    return tuple(gpu for gpu in found if gpu.uuid in named or gpu.parent in named) if named else tuple(found)


def _until_unknown(found: Sequence[Gpu], entries: Sequence[str]) -> tuple[Gpu, ...]:
    numbered = whole_gpus(found)
    chosen: list[Gpu] = []
    for entry in entries:
        if entry.isdecimal():
            parent = numbered[int(entry)] if int(entry) < len(numbered) else ""
            matching = [gpu for gpu in found if parent and parent in (gpu.uuid, gpu.parent)]
        else:
            matching = [gpu for gpu in found if entry.startswith(_BY_UUID) and gpu.uuid.startswith(entry)]
        if not matching or any(gpu in chosen for gpu in matching):
            break
        chosen += matching
    return tuple(chosen)


def whole_gpus(found: Sequence[Gpu]) -> tuple[str, ...]:
    """Return the UUIDs of these GPUs and of these slices' parents, in the order of their numbers."""
    return tuple(dict.fromkeys(gpu.parent or gpu.uuid for gpu in found))
