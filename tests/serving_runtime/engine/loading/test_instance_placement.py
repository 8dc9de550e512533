"""Instance groups on the GPUs that are there, as Triton's documentation of them has it."""

from threading import Barrier, Thread

import numpy as np
import pytest
from google.protobuf import text_format

from serving_runtime import proto
from serving_runtime.common.errors import ModelError
from serving_runtime.config.instances import count_by_gpu
from serving_runtime.config.signature import Signature
from serving_runtime.devices.gpu import Gpu
from serving_runtime.engine.loading.instance_placement import settle, spread

pytestmark = pytest.mark.feature("C5")

TWO = (Gpu("GPU-a", "H100", 1), Gpu("GPU-b", "H100", 1))


def settled(groups: str, gpus: tuple[Gpu, ...] = TWO, *, capable: bool = True):
    config = text_format.Parse(f'name: "m" backend: "onnxruntime" {groups}', proto.ModelConfig())
    settle(config, gpus, "NVML lists none", capable=capable)
    return config


@pytest.mark.parametrize(
    ("groups", "counts"),
    [
        pytest.param("", {0: 1, 1: 1}, id="nothing is said: one on each GPU"),
        pytest.param("instance_group { count: 2 }", {0: 2, 1: 2}, id="KIND_AUTO: on all GPUs"),
        pytest.param("instance_group { gpus: [1] }", {1: 1}, id="KIND_AUTO: on the GPUs that it lists"),
        pytest.param("instance_group { gpus: [1, 2] }", {None: 1}, id="KIND_AUTO: on the CPU where one is not there"),
        pytest.param("instance_group { kind: KIND_GPU }", {0: 1, 1: 1}, id="KIND_GPU: on all"),
        pytest.param("instance_group { kind: KIND_GPU gpus: [1] count: 3 }", {1: 3}, id="KIND_GPU: on one"),
        pytest.param("instance_group { kind: KIND_CPU count: 2 }", {None: 2}, id="KIND_CPU"),
        pytest.param(
            "instance_group [ { kind: KIND_GPU gpus: [0] count: 2 }, { kind: KIND_CPU }, { kind: KIND_GPU } ]",
            {0: 3, None: 1, 1: 1},
            id="groups on several devices",
        ),
    ],
)
def test_where_instances_run(groups: str, counts: dict[int | None, int]) -> None:
    assert count_by_gpu(settled(groups)) == counts


@pytest.mark.parametrize("groups", ["", "instance_group { count: 2 }", "instance_group { gpus: [0] }"])
@pytest.mark.parametrize(("gpus", "capable"), [((), True), (TWO, False)], ids=["no GPU", "no library for GPUs"])
def test_without_gpus_the_cpu_is_taken_where_nobody_insists(groups: str, gpus: tuple[Gpu, ...], capable: bool) -> None:
    assert list(count_by_gpu(settled(groups, gpus, capable=capable))) == [None]


@pytest.mark.parametrize(
    ("groups", "gpus", "sentence"),
    [
        ("kind: KIND_GPU", (), "instance_group asks for GPUs, and this process has none: NVML lists none"),
        ("kind: KIND_GPU gpus: [3]", (), "instance_group asks for GPU 3, and this process has none: NVML lists none"),
        ("kind: KIND_GPU gpus: [0, 2]", TWO, "instance_group asks for GPU 2; this process has 2, numbered from 0"),
    ],
)
def test_a_gpu_that_is_not_there_refuses_the_load(groups: str, gpus: tuple[Gpu, ...], sentence: str) -> None:
    with pytest.raises(ModelError) as caught:
        settled(f"instance_group {{ {groups} }}", gpus)
    assert str(caught.value) == f"model 'm': {sentence}"


class Device:
    """A model on one device, whose runs wait until as many as there are instances run at once."""

    signature = Signature((), ())
    opsets: dict[str, int] = {}

    def __init__(self, number: int | None, together: Barrier) -> None:
        self.number, self.together, self.runs, self.closed = number, together, 0, False

    def run(self, inputs):
        self.runs += 1
        self.together.wait(timeout=60)
        return [np.array([self.number])]

    def close(self) -> None:
        self.closed = True


def test_each_device_runs_as_many_at_once_as_it_has_instances() -> None:
    together = Barrier(4)
    devices: dict[int | None, Device] = {}
    model = spread({0: 3, 1: 1}, lambda number: devices.setdefault(number, Device(number, together)))
    threads = [Thread(target=model.run, args=([],)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert {number: device.runs for number, device in devices.items()} == {0: 3, 1: 1}
    model.close()
    assert all(device.closed for device in devices.values())


def test_a_model_that_does_not_open_on_one_device_is_closed_on_the_others() -> None:
    first = Device(0, Barrier(1))

    def load(number: int | None) -> Device:
        if number == 0:
            return first
        raise ModelError("out of memory")

    with pytest.raises(ModelError, match="out of memory"):
        spread({0: 1, 1: 1}, load)
    assert first.closed


def test_on_one_device_it_is_the_model_itself() -> None:
    device = Device(None, Barrier(1))
    assert spread({None: 5}, lambda _: device) is device
