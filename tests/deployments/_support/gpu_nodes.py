"""GPU nodes with whole GPUs and slices, and models that were measured on them."""

from dataclasses import replace

from integrations.clusters.base import GpuPod, NodeGpus

_GIB = 1 << 30


SMALL, LARGE, WHOLE = "nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb", "nvidia.com/gpu"


MIXED = NodeGpus(
    node="mixed",
    product="NVIDIA-H100-80GB-HBM3",
    memory_mib=81559,
    count=1,
    strategy="mixed",
    config="",
    config_state="",
    resources={SMALL: 4, LARGE: 1},
    pods=(),
)


SINGLE = replace(
    MIXED, node="single", product="NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", strategy="single", count=7, resources={WHOLE: 7}
)


UNCUT = replace(MIXED, node="uncut", product="NVIDIA-A30", memory_mib=24576, strategy="none", resources={WHOLE: 2})


def with_pods(node: NodeGpus, resource: str, count: int, service: str = "default/other") -> NodeGpus:
    pods = tuple(GpuPod(f"default/{number}", service, resource, 1) for number in range(count))
    return replace(node, pods=(*node.pods, *pods))


def measured(**p99_ms: float) -> dict[str, object]:
    """Return a version's profile as it is stored, with measurements on slices of an H100: `small`, `large`."""
    slices = {"small": (SMALL, "1g.10gb"), "large": (LARGE, "3g.40gb")}
    return {
        "memory_bytes": _GIB,
        "on": [
            {
                "resource": slices[name][0],
                "device": {"kind": "gpu", "name": "NVIDIA H100 80GB HBM3", "mig_profile": slices[name][1]},
                "batches": [{"batch_size": size, "latency_p99_us": ms * 1000 * size} for size in (1, 4)],
            }
            for name, ms in p99_ms.items()
        ],
    }


_SHARED_SMALL = f"{SMALL}.shared"


SHARED = replace(
    MIXED, node="shared", resources={_SHARED_SMALL: 28, LARGE: 1}, sharers={_SHARED_SMALL: 4}, sharing="time-slicing"
)
