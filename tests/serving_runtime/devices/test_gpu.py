"""Which GPUs and slices an environment leaves to a process."""

import pytest

from serving_runtime.devices.gpu import Gpu, visible


def cut(parent: str, *names: str) -> list[Gpu]:
    return [Gpu(f"MIG-{name}", "H100", 10 << 30, "9.0", "1g.10gb", f"GPU-{parent}") for name in names]


WHOLE = [Gpu("GPU-a1", "H100", 80 << 30, "9.0"), Gpu("GPU-a2", "H100", 80 << 30, "9.0")]
CUT = [*cut("b1", "11", "12"), *cut("b2", "21")]


@pytest.mark.parametrize(
    ("found", "environ", "uuids"),
    [
        pytest.param(WHOLE, {}, ["GPU-a1", "GPU-a2"], id="nothing is said: all"),
        pytest.param(WHOLE, {"CUDA_VISIBLE_DEVICES": "1,0"}, ["GPU-a2", "GPU-a1"], id="numbers, in their order"),
        pytest.param(WHOLE, {"CUDA_VISIBLE_DEVICES": ""}, [], id="none"),
        pytest.param(WHOLE, {"CUDA_VISIBLE_DEVICES": "-1"}, [], id="none, as many write it"),
        pytest.param(WHOLE, {"CUDA_VISIBLE_DEVICES": "1,7,0"}, ["GPU-a2"], id="an unknown number ends the list"),
        pytest.param(WHOLE, {"CUDA_VISIBLE_DEVICES": "GPU-a2"}, ["GPU-a2"], id="a UUID"),
        pytest.param(WHOLE, {"CUDA_VISIBLE_DEVICES": "0,0"}, ["GPU-a1"], id="a GPU twice ends the list"),
        pytest.param(CUT, {"CUDA_VISIBLE_DEVICES": "MIG-12"}, ["MIG-12"], id="a slice"),
        pytest.param(CUT, {"CUDA_VISIBLE_DEVICES": "MIG-12,MIG-21"}, ["MIG-12", "MIG-21"], id="slices of two GPUs"),
        pytest.param(CUT, {"CUDA_VISIBLE_DEVICES": "0"}, ["MIG-11", "MIG-12"], id="all slices of a GPU"),
        pytest.param(CUT, {"NVIDIA_VISIBLE_DEVICES": "MIG-21"}, ["MIG-21"], id="a container's slice"),
        pytest.param(CUT, {"NVIDIA_VISIBLE_DEVICES": "GPU-b1"}, ["MIG-11", "MIG-12"], id="a container's cut GPU"),
        pytest.param(WHOLE, {"NVIDIA_VISIBLE_DEVICES": "3"}, ["GPU-a1", "GPU-a2"], id="a number of the host's"),
        pytest.param(WHOLE, {"NVIDIA_VISIBLE_DEVICES": "void"}, [], id="a container without"),
        pytest.param(
            CUT,
            {"NVIDIA_VISIBLE_DEVICES": "MIG-11,MIG-12", "CUDA_VISIBLE_DEVICES": "MIG-12"},
            ["MIG-12"],
            id="CUDA's variable counts",
        ),
    ],
)
def test_what_a_process_may_use(found: list[Gpu], environ: dict[str, str], uuids: list[str]) -> None:
    assert [gpu.uuid for gpu in visible(found, environ)] == uuids
