"""Replay process of a candidate: answers recorded requests over its standard input and output.

It listens on no port and writes its requests nowhere: only its starter can reach it. It is killed when its starter is,
when it does not answer in time, and at the end.
"""

import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from common.errors import InvalidInput, Unavailable
from integrations.artifacts.store import folder_of
from integrations.clusters.base import Candidate, Exchange, hidden, may_connect, without_folders
from integrations.clusters.flags import python_flags
from integrations.clusters.local.confinement import private
from integrations.clusters.local.jobs.jobs import enclosed, memory_limit, scratch_in
from integrations.clusters.local.model_repository import lay_out
from integrations.clusters.local.runtime import RUNTIME, environment
from integrations.clusters.payloads import exchange_of
from integrations.sandbox.policy import NetworkAccess

_COMPLAINT_BYTES = 4096


@contextmanager
def replay(
    candidate: Candidate,
    folder: Path,
    *,
    allow_python_models: bool = False,
    runtime: tuple[str, ...] = RUNTIME,
) -> Iterator[Callable[[Exchange], Exchange]]:
    """Run the candidate below `folder`; see `ClusterDriver.replay`."""
    with scratch_in(folder) as scratch:
        artifact = folder_of(candidate.artifact_uri)
        if not artifact.is_dir():
            place = without_folders(candidate.artifact_uri)
            raise InvalidInput(f"the artifact {place} is not there; push the model version again")
        repository, own = scratch / "repository", scratch / "own"
        own.mkdir()
        model = repository / candidate.model_name
        lay_out(
            artifact,
            model,
            version=candidate.model_version,
            config=candidate.model_config,
            with_code=allow_python_models,
        )
        with (scratch / "stderr").open("w+b") as stderr:
            is_code = candidate.is_code and allow_python_models
            asked = [*runtime, "replay", str(model), *python_flags(allowed=allow_python_models)]
            connects = may_connect(candidate.egress, is_code=is_code)
            network = NetworkAccess.ALL if connects else NetworkAccess.NONE
            command = enclosed(asked, repository, own, {**memory_limit(), "core": 0}, network=network)
            env = {**environment(candidate.env, is_code=is_code), **private(own)}
            process = _started(candidate, command, env, stderr)
            try:
                runs = _Running(candidate, process, scratch / "stderr")
                runs.check_ready()
                yield runs.answer
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # its children too
                process.wait()
                for pipe in (process.stdin, process.stdout):
                    if pipe is not None:
                        with suppress(BrokenPipeError):
                            pipe.close()


def _started(
    candidate: Candidate, command: list[str], env: Mapping[str, str], stderr: IO[bytes]
) -> "subprocess.Popen[bytes]":
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=env,
            process_group=0,
        )
    except OSError as error:
        raise Unavailable(f"no process could be started for {candidate.name}: {error}") from error


class _Running:
    """The process of a candidate; takes one request at a time."""

    def __init__(self, candidate: Candidate, process: "subprocess.Popen[bytes]", stderr: Path) -> None:
        self._candidate = candidate
        self._process = process
        self._stderr = stderr
        self._is_late = False

    def check_ready(self) -> None:
        """Return once the model is loaded; raises InvalidInput with the runtime's reason where it cannot be."""
        said = self._exchanged(b"", "was not loaded")
        if "error" in said:
            raise InvalidInput(
                f"{self._candidate.name} cannot be served: {hidden(str(said['error']), self._candidate.env)}"
            )

    def answer(self, recorded: Exchange) -> Exchange:
        """Return the recorded request with the candidate's answer."""
        asked = json.dumps({"id": recorded.request_id, "data": recorded.request}).encode() + b"\n"
        said = self._exchanged(asked, f"did not answer request {recorded.request_id}")
        return exchange_of(said, self._candidate.name, recorded.request, recorded.at)

    def _exchanged(self, line: bytes, what: str) -> dict[str, str]:
        """Write a line and return the object in the next one; raises Unavailable, naming `what` did not happen."""
        assert self._process.stdin is not None  # noqa: S101 - both are pipes
        assert self._process.stdout is not None  # noqa: S101
        watch = threading.Timer(self._candidate.timeout_s, self._kill)
        watch.start()
        try:
            self._process.stdin.write(line)
            self._process.stdin.flush()
            return dict(json.loads(self._process.stdout.readline()))
        except (OSError, ValueError) as error:
            raise Unavailable(f"{self._candidate.name} {what}{self._why()}") from error
        finally:
            watch.cancel()

    def _kill(self) -> None:
        self._is_late = True
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _why(self) -> str:
        if self._is_late:
            return f" within {self._candidate.timeout_s:g} s"
        self._kill()
        code = self._process.wait()
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        with self._stderr.open("rb") as file:
            file.seek(max(0, self._stderr.stat().st_size - _COMPLAINT_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
        last = next((line.strip() for line in reversed(lines) if line.strip()), "it printed nothing")
        return f": its process {how}: {hidden(last, self._candidate.env)}"
