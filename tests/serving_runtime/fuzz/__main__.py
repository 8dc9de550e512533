"""Fuzz a target under libFuzzer with coverage of the Python code that it runs (PyPI `atheris`).

usage: python -m tests.serving_runtime.fuzz TARGET FINDINGS_FOLDER [libFuzzer flags: -runs=1000 -max_total_time=600]

Ends with 0 when the runs or the time are over, else with the finding: its bytes are left in FINDINGS_FOLDER.
"""

import asyncio
import sys
import tempfile
from pathlib import Path

import atheris
from django.conf import settings

sys.path.insert(0, str(Path(__file__).parents[3] / "platform"))
settings.configure()

with atheris.instrument_imports(include=["serving_runtime", "deployments", "common"]):
    from tests.serving_runtime.fuzz import model_files
    from tests.serving_runtime.fuzz.documents import FILES
    from tests.serving_runtime.fuzz.seeds import SEEDS
    from tests.serving_runtime.fuzz.targets import Target, runtime

_LIMITS = ("-rss_limit_mb=6144", "-malloc_limit_mb=512", "-print_final_stats=0")
_TIMEOUT_S = 10
_TIMEOUT_OF_MODELS_S = 100
"""Later than the loader ends what takes too long, which it does by processor time."""


def main(target: str, findings: str, *flags: str) -> None:
    scratch = Path(tempfile.mkdtemp(prefix="fuzz-"))
    corpus = scratch / "corpus"
    corpus.mkdir()
    of_models = target in model_files.BACKENDS
    for number, seed in enumerate(model_files.seeds(target) if of_models else SEEDS[target]):
        (corpus / str(number)).write_bytes(seed)
    limits = (
        *_LIMITS,
        f"-timeout={_TIMEOUT_OF_MODELS_S if of_models else _TIMEOUT_S}",
        f"-max_len={model_files.MAX_LEN if of_models else 4096}",
        f"-artifact_prefix={findings}/{target}-",
    )
    if of_models:
        with model_files.target(target, scratch, Path(findings)) as files:
            atheris.Setup([sys.argv[0], *limits, *flags, str(corpus)], files.run)
            atheris.Fuzz()
    atheris.Setup(
        [sys.argv[0], *limits, *flags, str(corpus)], FILES.get(target) or _of_runtime(target, scratch / "models")
    )
    atheris.Fuzz()


def _of_runtime(target: str, models: Path) -> Target:
    models.mkdir()
    loop = asyncio.new_event_loop()
    return loop.run_until_complete(runtime(models)).targets()[target]


if __name__ == "__main__":
    main(*sys.argv[1:])
