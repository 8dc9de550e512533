"""Registering many models: models a minute and processor time of each, with and without a process that checks many.

    python -m benchmarks.registry.bulk [--models 600] [--alone 60]

An installation of its own: SQLite, the local cluster, and as many workers as it runs checks at once. The models are
small ONNX files, each with other weights. Registration goes through the API without a network; each worker then takes
checks as a Celery worker does, until no version waits. `alone` versions are checked by a process for each question, as
before. Processor time is that of workers and all that they start, from the kernel's own account of ended processes.
"""

import argparse
import io
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path

import django
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

_FEATURES, _HIDDEN = 16, 32
_ALL = 10_000


def set_up(home: Path) -> None:
    """Have this process and those that it starts use an installation below `home`."""
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "control_plane.settings",
        "FAIRLEAD_HOME": str(home),
        "FAIRLEAD_SECRET_KEY": "only-for-measuring-" + "x" * 40,
        "FAIRLEAD_LOG_LEVEL": "ERROR",
        "FAIRLEAD_TOKEN_REQUESTS_PER_MINUTE": "0",
    }
    django.setup()


def model(seed: int) -> bytes:
    """Return an ONNX file: a dense network with one hidden layer."""
    weights = np.random.default_rng(seed)
    shapes = {"w1": (_FEATURES, _HIDDEN), "b1": (_HIDDEN,), "w2": (_HIDDEN, 3), "b2": (3,)}
    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["hidden"]),
        helper.make_node("Relu", ["hidden"], ["positive"]),
        helper.make_node("Gemm", ["positive", "w2", "b2"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "mlp",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", _FEATURES])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 3])],
        [numpy_helper.from_array(weights.normal(size=shape).astype("f4"), name) for name, shape in shapes.items()],
    )
    content = io.BytesIO()
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), content)
    return content.getvalue()


def processor_s() -> float:
    """Return the processor time of this process and of its ended children, with theirs."""
    found = [resource.getrusage(which) for which in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in found)


def register(count: int, prefix: str) -> tuple[float, float]:
    """Register models through the API; returns seconds and processor time."""
    from django.utils import timezone  # noqa: PLC0415 - what reads Django's settings
    from rest_framework.test import APIClient  # noqa: PLC0415

    from accounts.domain.scopes import Scope  # noqa: PLC0415
    from accounts.services import token_create, user_get_or_create  # noqa: PLC0415

    now = timezone.now()
    user = user_get_or_create(username="bench", now=now)
    made = token_create(user=user, name=prefix, scope=Scope.WRITE, lifetime=timedelta(hours=9), now=now, actor="bench")
    client = APIClient(SERVER_NAME="localhost", headers={"authorization": f"Bearer {made.secret}"})
    files = [model(seed) for seed in range(count)]
    before, started = processor_s(), time.monotonic()
    for number, content in enumerate(files):
        address = f"/api/v1/models/{prefix}-{number}/versions?filename=model.onnx"
        answer = client.post(address, content, content_type="application/octet-stream")
        if answer.status_code != 201:
            raise RuntimeError(f"{prefix}-{number} was not registered: {answer.content[:300]!r}")
    return time.monotonic() - started, processor_s() - before


def work(*, alone: bool) -> None:
    """Check versions until none waits, and print the processor time that took."""
    from django.utils import timezone  # noqa: PLC0415

    from integrations.clusters.local.driver import LocalDriver  # noqa: PLC0415
    from registry import tasks  # noqa: PLC0415
    from registry.domain.version_lifecycle import Status  # noqa: PLC0415
    from registry.models import ModelVersion  # noqa: PLC0415
    from registry.selectors import versions_to_check  # noqa: PLC0415

    if alone:
        del LocalDriver.checker  # the registry then runs a job for each question
    before = processor_s()
    while ModelVersion.objects.filter(status=Status.PENDING.value).exists():
        waiting = versions_to_check(now=timezone.now(), limit=1)
        if not waiting:
            time.sleep(0.05)  # the other workers have the rest
        for version_id in waiting:
            tasks.check_version(version_id)
    sys.stdout.write(json.dumps({"processor_s": processor_s() - before}) + "\n")


def check(home: Path, workers: int, *, alone: bool) -> tuple[float, float]:
    """Run workers until no version waits; returns seconds and processor time of all together."""
    command = [sys.executable, "-m", "benchmarks.registry.bulk", "--work", str(home), *(["--by-job"] if alone else [])]
    started = time.monotonic()
    running = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(workers)]
    said = [process.communicate()[0] for process in running]
    took = time.monotonic() - started
    if any(process.returncode for process in running):
        raise RuntimeError("a worker failed")
    return took, sum(json.loads(line)["processor_s"] for line in said)


def report(what: str, count: int, seconds: float, processor: float) -> None:
    """Print the figures of one part."""
    sys.stdout.write(
        f"{what:34} {count:6} models  {60 * count / seconds:8.0f} a minute  {1000 * processor / count:7.0f} ms of "
        f"processor time each  ({_ALL:,} extrapolated: {_ALL * seconds / count / 60:.1f} min)\n"
    )
    sys.stdout.flush()


def main() -> int:
    """Measure, or work as one of the workers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=600)
    parser.add_argument("--alone", type=int, default=60, help="of them for the way before; 0 leaves it out")
    parser.add_argument("--work", type=Path, metavar="HOME", help=argparse.SUPPRESS)
    parser.add_argument("--by-job", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work is not None:
        set_up(options.work)
        work(alone=options.by_job)
        return 0
    with tempfile.TemporaryDirectory(prefix="fairlead-bulk-") as home:
        set_up(Path(home))
        from django.core.management import call_command  # noqa: PLC0415
        from django.utils import timezone  # noqa: PLC0415

        from registry.models import ModelVersion  # noqa: PLC0415
        from registry.services.version_checks import checks_at_once  # noqa: PLC0415

        call_command("migrate", verbosity=0)
        workers = checks_at_once(timezone.now())
        for what, count, alone in (
            ("one process for each", options.alone, True),
            ("one for many", options.models, False),
        ):
            if count:
                report("registered through the API", count, *register(count, "alone" if alone else "many"))
                report(f"checked, {what}, {workers} workers", count, *check(Path(home), workers, alone=alone))
        found = dict.fromkeys(ModelVersion.objects.values_list("status", flat=True).order_by())
        if list(found) != ["READY"]:
            raise RuntimeError(f"not all versions are READY: {list(found)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
