"""Job runner on this machine: one question about a model as a process, `python -I -m serving_runtime KIND DIR --json`.

The file may be hostile: the process has limits on memory and processor time, and its whole group is killed at the
timeout. Each job has its own folder beside the artifacts, where files can be linked; leftovers of a killed worker there
are removed with the next job.
"""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from common.errors import FairleadError, Unavailable
from common.process_identity import start_ticks
from integrations.artifacts.store import folder_of
from integrations.clusters.base import Job, JobKind, JobResult, Made, OnStage, hidden, may_connect, without_folders
from integrations.clusters.flags import python_flags
from integrations.clusters.local.confinement import confined, private
from integrations.clusters.local.model_repository import lay_out
from integrations.clusters.local.runtime import RUNTIME, environment
from integrations.sandbox.command import command
from integrations.sandbox.policy import NetworkAccess

_MODEL_NAME, _MODEL_VERSION, _MADE, _REQUEST = "model", "1", "made", "request.json"
_REPOSITORY, _OWN = "repository", "own"
_NETWORK = {JobKind.TUNE: NetworkAccess.LOOPBACK}  # a tuning calls servers that it starts
_MAX_OUTPUT_BYTES = 4 << 20
_LAST_WORDS_BYTES = 4096
_LOOK_EVERY_S = 0.2
_LEAST_MEMORY_BYTES = 16 << 30  # address space, of which a runtime with its libraries takes a lot without using it
TIMED_OUT = 124  # what coreutils' timeout exits with


def run(
    job: Job,
    folder: Path,
    *,
    allow_python_models: bool = False,
    runtime: tuple[str, ...] = RUNTIME,
    on_stage: OnStage | None = None,
    made: Made | None = None,
) -> JobResult:
    """Run the job below `folder`, pass its resulting folder to `made`, and return its result.

    `exit_code` is `TIMED_OUT` at the timeout and -N for signal N.

    Raises:
        Unavailable: no process could be started.
    """
    with scratch_in(folder) as scratch:
        repository, own = scratch / _REPOSITORY, scratch / _OWN
        model = repository / _MODEL_NAME
        try:
            artifact = folder_of(job.artifact_uri)
            if not artifact.is_dir():
                place = without_folders(job.artifact_uri)
                return JobResult(1, "", f"the artifact {place} is not there; push the model version again")
            lay_out(artifact, model, version=_MODEL_VERSION, config=job.model_config, with_code=allow_python_models)
        except FairleadError as error:
            return JobResult(1, "", without_folders(error.message))
        own.mkdir()
        if job.request_id:
            (repository / _REQUEST).write_bytes(job.request)
        asked = [
            *runtime,
            job.kind.value,
            str(model),
            *job.arguments,
            *([f"--output={own / _MADE}"] if job.result_id else []),
            *([f"--request={repository / _REQUEST}"] if job.request_id else []),
            "--json",
            *(python_flags(allowed=allow_python_models) if job.kind.loads_the_model else []),
        ]
        with (scratch / "stdout").open("w+b") as stdout, (scratch / "stderr").open("w+b") as stderr:
            output_to = (stdout.fileno(), stderr.fileno())
            is_code = job.is_code and allow_python_models
            started = enclosed(
                asked,
                repository,
                own,
                limits(job.timeout_s, 0 if allow_python_models else job.largest_file_bytes or _MAX_OUTPUT_BYTES),
                network=NetworkAccess.ALL
                if may_connect(job.egress, is_code=is_code)
                else NetworkAccess.LOOPBACK
                if job.kind is JobKind.TUNE
                else NetworkAccess.NONE,
            )
            env = {**environment(job.env, is_code=is_code), **private(own)}
            exit_code = _run(
                started, job, env, output_to, on_stage and (lambda: on_stage(_last_line(scratch / "stderr")))
            )
            stdout.seek(0)
            output = stdout.read(_MAX_OUTPUT_BYTES).decode(errors="replace")
            complaint = _last_words(scratch / "stderr")
        if exit_code == 0 and job.result_id and made is not None:
            made(own / _MADE)
    return JobResult(exit_code, output, hidden(_message(job, exit_code, output, complaint), job.env))


@contextmanager
def scratch_in(folder: Path) -> Iterator[Path]:
    """Yield a folder of this process below `folder`, which is removed at the end."""
    folder.mkdir(parents=True, exist_ok=True)
    _drop_abandoned(folder)
    with tempfile.TemporaryDirectory(prefix=f"{os.getpid()}-{start_ticks(os.getpid())}-", dir=folder) as scratch:
        yield Path(scratch)


def memory_limit() -> dict[str, int]:
    """Return the address space limit of a process that loads an untrusted model.

    Where there are GPUs there is no such limit: their drivers reserve more than any machine has.
    """
    if any(Path("/dev").glob("nvidia*")):
        return {}
    memory = max(_LEAST_MEMORY_BYTES, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return {"as": memory}


def _drop_abandoned(folder: Path) -> None:
    """Remove the jobs of processes that no longer run."""
    for place in folder.iterdir():
        pid, ticks, *_ = place.name.split("-")
        if str(start_ticks(int(pid))) != ticks:
            shutil.rmtree(place, ignore_errors=True)


def enclosed(
    asked: list[str], repository: Path, own: Path, limits: Mapping[str, int], *, network: NetworkAccess
) -> list[str]:
    """Return the command that runs the runtime in the sandbox: it reads `repository` and writes into `own`."""
    sandbox = replace(confined(asked, read=[repository], write=[own], network=network), own_processes=True)
    return command(asked, sandbox=sandbox, limits=limits, folder=str(own))


def limits(timeout_s: float, largest_file_bytes: int) -> dict[str, int]:
    """Return the limits of a process that opens an untrusted model for so long.

    Args:
        largest_file_bytes: that it may write; 0 for no limit. It bounds shared memory too, which tensors of models in
            Python go through.
    """
    return {
        **memory_limit(),
        "cpu": round(timeout_s * (os.cpu_count() or 1)) + 1,
        **({"fsize": largest_file_bytes} if largest_file_bytes else {}),
        "core": 0,
    }


def _run(
    command: list[str],
    job: Job,
    env: Mapping[str, str],
    output_to: tuple[int, int],
    look: Callable[[], None] | None,
) -> int:
    stdout, stderr = output_to
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, process_group=0, env=env
        )
    except OSError as error:
        raise Unavailable(f"no process could be started for a model check: {error}") from error
    try:
        return _waited(process, job.timeout_s, look)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # its children too, with any exit code
        process.wait()


def _waited(process: "subprocess.Popen[bytes]", timeout_s: float, look: Callable[[], None] | None) -> int:
    deadline = time.monotonic() + timeout_s
    while (left_s := deadline - time.monotonic()) > 0:
        try:
            return process.wait(timeout=left_s if look is None else min(left_s, _LOOK_EVERY_S))
        except subprocess.TimeoutExpired:
            if look is not None:
                look()
    return TIMED_OUT


def _last_words(file: Path) -> str:
    with file.open("rb") as said:
        said.seek(max(0, os.fstat(said.fileno()).st_size - _LAST_WORDS_BYTES))
        return said.read().decode(errors="replace")


def _last_line(file: Path) -> str:
    """Return the last complete line; empty without one."""
    *whole, _ = _last_words(file).split("\n")
    return whole[-1] if whole else ""


def timed_out(job: Job) -> str:
    """Return the message of a job that ended at its timeout."""
    return f"the {job.kind} of the model did not finish within {job.timeout_s:g} s"


def _message(job: Job, exit_code: int, output: str, complaint: str) -> str:
    """Return one sentence on why the job gave no answer; empty when it did."""
    if exit_code == 0:
        return ""
    if exit_code == TIMED_OUT:
        return timed_out(job)
    with suppress(ValueError, KeyError, TypeError):
        return str(json.loads(output)["error"])
    last = next((line.strip() for line in reversed(complaint.splitlines()) if line.strip()), "it printed nothing")
    if exit_code < 0:
        return f"the {job.kind} of the model was ended by {signal.Signals(-exit_code).name}: {last}"
    return f"the {job.kind} of the model ended with exit code {exit_code}: {last}"
