"""Join of labels with kept answers: rows a second and peak memory, on SQLite or PostgreSQL.

    python -m benchmarks.feedback.join [--rows 1000000] [--postgres] [--scorer accuracy|absoluteError|brier] [--profile]

Half of the answers are those of another revision; requests are spread over four weeks. Making the rows is not measured.
Beside joining, it measures taking the labels, in batches of 10,000.
"""

import argparse
import cProfile
import json
import os
import pstats
import random
import resource
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import django

from tests.servers.postgres import postgres

_PIECE = 10_000
_HOURS = 24 * 28
_CLASSES = 10


def set_up(home: Path, url: str) -> None:
    """Have this process use an installation below `home`, with a database of its own."""
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "control_plane.settings",
        "FAIRLEAD_HOME": str(home),
        "FAIRLEAD_SECRET_KEY": "only-for-measuring-" + "x" * 40,
        "FAIRLEAD_LOG_LEVEL": "ERROR",
    }
    if url:
        os.environ["FAIRLEAD_DATABASE_URL"] = url
    django.setup()
    from django.core.management import call_command  # noqa: PLC0415 - reads the settings

    call_command("migrate", verbosity=0)


def pieces(rows: int) -> Iterator[range]:
    """Yield the numbers of requests, a batch at a time."""
    for begin in range(0, rows, _PIECE):
        yield range(begin, min(rows, begin + _PIECE))


def make_answers(service: Any, rows: int, scorer: str, now: datetime) -> None:
    """Store answers, in the order of time as the reconciler does."""
    from common.encryption import seal_bytes  # noqa: PLC0415
    from feedback.models import Answer, Kept  # noqa: PLC0415

    Kept.objects.create(
        service=service,
        share_percent=100,
        days=30,
        max_rows=rows,
        max_bytes=1 << 40,
        outputs=["p"],
        created_at=now,
        created_by="bench",
    )
    chance = random.Random(1)
    tensor = {"datatype": "FP32", "shape": [1, _CLASSES], "data": [0.91, *[0.01] * (_CLASSES - 1)]}
    content = json.dumps({"outputs": {"p": tensor}, "inputs": {}}).encode()
    sealed = seal_bytes(zlib.compress(content), purpose="kept answers") if scorer == "brier" else b""
    for piece in pieces(rows):
        Answer.objects.bulk_create(
            Answer(
                service=service,
                request_id=request_id(number),
                revision=f"digits-0000{1 + number % 2}",
                version=1 + number % 2,
                at=now - timedelta(hours=_HOURS) + timedelta(hours=_HOURS) * number / rows,
                top=[[chance.randrange(_CLASSES) if scorer == "accuracy" else 0, 0.5]],
                sealed=sealed,
                bytes=100,
            )
            for number in piece
        )


def request_id(number: int) -> str:
    """Return an id such as gateways make: no order is in it."""
    value = (number + 1) * 0x9E3779B97F4A7C15F39CC0605CEDC835 % (1 << 128)
    text = f"{value:032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def take(rows: int, now: datetime) -> float:
    """Take the labels in another order than the answers'; returns seconds."""
    from feedback.domain.labels import labels_of  # noqa: PLC0415
    from feedback.services.labels import labels_take  # noqa: PLC0415

    numbers = list(range(rows))
    random.Random(2).shuffle(numbers)
    started = time.monotonic()
    for piece in pieces(rows):
        batch = [{"request_id": request_id(numbers[place]), "value": numbers[place] % _CLASSES} for place in piece]
        labels = labels_of(batch, now=now, most=_PIECE)
        labels_take(namespace="default", name="digits", labels=labels, actor="bench", now=now)
    return time.monotonic() - started


def join(now: datetime) -> float:
    """Join until no label is due; returns seconds."""
    from feedback.services.join import labels_join  # noqa: PLC0415

    started = time.monotonic()
    while labels_join(clock=lambda: now + timedelta(seconds=time.monotonic() - started)):
        pass
    return time.monotonic() - started


def peak_mib() -> float:
    """Return the largest memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(rows: int, scorer: str, *, profile: bool) -> dict[str, float]:
    """Make the rows, take and join them, and return what that took."""
    from django.utils import timezone  # noqa: PLC0415

    from feedback.models import HourlyQuality, Score  # noqa: PLC0415
    from feedback.services.scorers import scorer_set  # noqa: PLC0415
    from tests import scenes  # noqa: PLC0415

    now = timezone.now()
    service = scenes.service()
    make_answers(service, rows, scorer, now)
    options = {"bound": 10} if scorer == "absoluteError" else {}
    scorer_set(
        namespace="default", name="digits", scorer="measured", kind=scorer, options=options, actor="bench", now=now
    )
    take_s = take(rows, now)
    before_mib = peak_mib()
    profiler = cProfile.Profile()
    if profile:
        profiler.enable()
    before_cpu = time.process_time()
    join_s = join(now)
    cpu_s = time.process_time() - before_cpu
    if profile:
        profiler.disable()
        pstats.Stats(profiler, stream=sys.stderr).sort_stats("cumulative").print_stats(45)
    found = Score.objects.count()
    if found != rows or sum(HourlyQuality.objects.values_list("scores", flat=True)) != rows:
        raise RuntimeError(f"{found} of {rows} answers were scored")
    return {
        "rows": rows,
        "take_s": round(take_s, 2),
        "join_s": round(join_s, 2),
        "join_cpu_s": round(cpu_s, 2),
        "joined_per_s": round(rows / join_s),
        "peak_mib_before": round(before_mib),
        "peak_mib": round(peak_mib()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--postgres", action="store_true", help="use a PostgreSQL of its own instead of SQLite")
    parser.add_argument("--scorer", choices=["accuracy", "absoluteError", "brier"], default="accuracy")
    parser.add_argument("--profile", action="store_true", help="write where the time of joining goes")
    options = parser.parse_args()
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        set_up(home, stack.enter_context(postgres()).url if options.postgres else "")
        found = measure(options.rows, options.scorer, profile=options.profile)
        database = "PostgreSQL" if options.postgres else "SQLite"
        sys.stdout.write(json.dumps({"database": database, "scorer": options.scorer, **found}) + "\n")
        from django.db import connection  # noqa: PLC0415

        connection.close()


if __name__ == "__main__":
    main()
