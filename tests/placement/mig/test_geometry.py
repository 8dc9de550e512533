"""The table of GPU products against what NVIDIA's guide says of them."""

import pytest

from placement.mig.geometry import GEOMETRIES, geometry_of, usable_bytes
from placement.mig.layouts import fits

_GIB = 1 << 30
# NVIDIA MIG User Guide, "Supported MIG Profiles": number of instances available, the smallest profile first.
_INSTANCES = {
    "A30": {"1g.6gb": 4, "2g.12gb": 2, "4g.24gb": 1},
    "A100-40GB": {"1g.5gb": 7, "1g.10gb": 4, "2g.10gb": 3, "3g.20gb": 2, "4g.20gb": 1, "7g.40gb": 1},
    "A100-80GB": {"1g.10gb": 7, "1g.20gb": 4, "2g.20gb": 3, "3g.40gb": 2, "4g.40gb": 1, "7g.80gb": 1},
    "H100-80GB": {"1g.10gb": 7, "1g.20gb": 4, "2g.20gb": 3, "3g.40gb": 2, "4g.40gb": 1, "7g.80gb": 1},
    "H100-94GB": {"1g.12gb": 7, "1g.24gb": 4, "2g.24gb": 3, "3g.47gb": 2, "4g.47gb": 1, "7g.94gb": 1},
    "H100-96GB": {"1g.12gb": 7, "1g.24gb": 4, "2g.24gb": 3, "3g.48gb": 2, "4g.48gb": 1, "7g.96gb": 1},
    "H200-141GB": {"1g.18gb": 7, "1g.35gb": 4, "2g.35gb": 3, "3g.71gb": 2, "4g.71gb": 1, "7g.141gb": 1},
    "B200-180GB": {"1g.23gb": 7, "1g.45gb": 4, "2g.45gb": 3, "3g.90gb": 2, "4g.90gb": 1, "7g.180gb": 1},
}


@pytest.mark.parametrize("product", GEOMETRIES)
def test_a_gpu_holds_as_many_instances_of_a_profile_as_the_guide_says(product: str) -> None:
    geometry = GEOMETRIES[product]
    most = {name: max(n for n in range(9) if fits(geometry, {name: n})) for name in geometry.profiles}
    assert most == _INSTANCES[product]


@pytest.mark.parametrize(
    ("label", "memory_mib", "product"),
    [
        ("NVIDIA-A30", 24576, "A30"),
        ("NVIDIA-A100-SXM4-40GB", 40536, "A100-40GB"),
        ("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", 4864, "A100-40GB"),
        ("NVIDIA-A100-80GB-PCIe", 81920, "A100-80GB"),
        ("NVIDIA-A100-SXM4-80GB", 81920, "A100-80GB"),
        ("NVIDIA-H100-80GB-HBM3", 81559, "H100-80GB"),
        ("NVIDIA-H100-PCIe", 81559, "H100-80GB"),
        ("NVIDIA-H100-NVL", 95830, "H100-94GB"),
        ("NVIDIA-GH200-480GB", 97871, "H100-96GB"),
        ("NVIDIA-H200", 143771, "H200-141GB"),
        ("NVIDIA-H200-NVL", 143771, "H200-141GB"),
        ("NVIDIA-B200", 183359, "B200-180GB"),
        ("Tesla-T4", 15360, None),
        ("NVIDIA-L4", 23034, None),
        ("NVIDIA-A10", 23028, None),
    ],
)
def test_a_product_is_known_by_its_labels(label: str, memory_mib: int, product: str | None) -> None:
    found = geometry_of(label, memory_mib)
    assert (found.product if found else None) == product


@pytest.mark.parametrize(
    ("profile", "gib"),
    [("1g.5gb", 4.75), ("3g.20gb", 19.5), ("1g.6gb", 5.75), ("1g.10gb", 9.5), ("1g.18gb", 16), ("3g.71gb", 69.75)],
)
def test_no_more_memory_is_promised_than_a_slice_has(profile: str, gib: float) -> None:
    assert usable_bytes(profile) <= gib * _GIB


def test_a_name_that_is_no_profile_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'large' is no MIG profile; expected a name such as 1g.10gb"):
        usable_bytes("large")
