"""Fuzz a target under libFuzzer with coverage of the runtime's Python code (PyPI `atheris`).

usage: python -m tests.serving_runtime.fuzz TARGET FINDINGS_FOLDER [libFuzzer flags: -runs=1000 -max_total_time=600]

Ends with 0 when the runs or the time are over, else with the finding: its bytes are left in FINDINGS_FOLDER.
"""

import asyncio
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["serving_runtime"]):
    from tests.serving_runtime.fuzz import files
    from tests.serving_runtime.fuzz.seeds import SEEDS
    from tests.serving_runtime.fuzz.targets import runtime

_LIMITS = ("-timeout=10", "-rss_limit_mb=2048", "-malloc_limit_mb=512", "-print_final_stats=0")


def main(target: str, findings: str, *flags: str) -> None:
    scratch = Path(tempfile.mkdtemp(prefix="fuzz-"))
    corpus = scratch / "corpus"
    corpus.mkdir()
    of_files = target in files.BACKENDS
    for number, seed in enumerate(files.seeds(target) if of_files else SEEDS[target]):
        (corpus / str(number)).write_bytes(seed)
    limits = (*_LIMITS, f"-max_len={files.MAX_LEN if of_files else 4096}", f"-artifact_prefix={findings}/{target}-")
    if of_files:
        with files.target(target, scratch) as run:
            atheris.Setup([sys.argv[0], *limits, *flags, str(corpus)], run)
            atheris.Fuzz()
    (scratch / "models").mkdir()
    loop = asyncio.new_event_loop()
    targets = loop.run_until_complete(runtime(scratch / "models")).targets()
    atheris.Setup([sys.argv[0], *limits, *flags, str(corpus)], targets[target])
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
