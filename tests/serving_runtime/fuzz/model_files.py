"""Files of models that are fuzzed: what passes the runtime's own checks is loaded and run in a child of a child.

`python -m tests.serving_runtime.fuzz.model_files BACKEND` imports the library once and forks for every path that it
reads from standard input, so that a file which ends the process is a finding and costs milliseconds.
"""

import io
import json
import os
import resource
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from serving_runtime.backends import lightgbm_file, registry, xgboost_file
from serving_runtime.backends.estimators import schema
from serving_runtime.config.model import BackendOptions
from serving_runtime.errors import ModelError

BACKENDS = {"xgboost": "xgboost", "lightgbm": "lightgbm", "skops": "sklearn"}
"""Targets, each with the backend that loads what passes."""

MAX_LEN = 1 << 16

_SECONDS = 20
_MEMORY_BYTES = 8 << 30
_NODES = "nodes"


class FileFindingError(AssertionError):
    """A file that passed the checks ended the process that loaded it."""


def seeds(target: str) -> tuple[bytes, ...]:
    """Return honest models: for skops a length of two bytes, a schema of that length, and the nodes of a tree."""
    random = np.random.default_rng(3)
    rows = random.normal(size=(60, 3))
    rows[:, 1] = random.integers(0, 6, 60)
    classes = ((rows[:, 0] > 0) ^ (rows[:, 1] > 2)).astype(int)
    if target == "xgboost":
        import xgboost  # noqa: PLC0415

        matrix = xgboost.DMatrix(rows, classes, feature_types=["q", "c", "q"], enable_categorical=True)
        options = {"objective": "binary:logistic", "max_depth": 2, "nthread": 1}
        trained = xgboost.train(options, matrix, 1)
        return bytes(trained.save_raw("json")), bytes(trained.save_raw("ubj"))
    if target == "lightgbm":
        import lightgbm  # noqa: PLC0415

        chosen = {
            "objective": "binary",
            "verbosity": -1,
            "min_data_in_leaf": 5,
            "num_leaves": 4,
            "min_data_per_group": 5,
        }
        data = lightgbm.Dataset(rows, classes, categorical_feature=[1], params={"verbosity": -1})
        return (lightgbm.train({**chosen, "num_threads": 1, "cat_smooth": 1.0}, data, 2).model_to_string().encode(),)
    said, parts = _skops()
    return (len(said).to_bytes(2, "little") + said + parts[_nodes_file(said)],)


def _skops() -> tuple[bytes, dict[str, bytes]]:
    import skops.io  # noqa: PLC0415
    from sklearn.tree import DecisionTreeClassifier  # noqa: PLC0415

    rows = np.random.default_rng(3).normal(size=(60, 3))
    content = skops.io.dumps(DecisionTreeClassifier(max_depth=2, random_state=0).fit(rows, rows[:, 0] > rows[:, 1]))
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    return parts.pop("schema.json"), parts


def _nodes_file(said: bytes) -> str:
    file: str = json.loads(said)["content"]["content"]["tree_"]["content"]["content"][_NODES]["file"]
    return file


@contextmanager
def target(name: str, scratch: Path) -> Iterator[Callable[[bytes], None]]:
    """Give a function from any bytes to nothing; raises FileFindingError, and whatever the checks let pass."""
    file = scratch / {"xgboost": "xgboost.json", "lightgbm": "model.txt", "skops": "model.skops"}[name]
    said, parts = _skops() if name == "skops" else (b"", {})
    command = [sys.executable, "-m", "tests.serving_runtime.fuzz.model_files", BACKENDS[name]]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as child:

        def run(data: bytes) -> None:
            try:
                _check(name, data, file, parts, said)
            except ModelError:
                return
            assert child.stdin is not None
            assert child.stdout is not None
            child.stdin.write(f"{file}\n")
            if (answer := child.stdout.readline().strip()) != "0":
                raise FileFindingError(f"the process that loaded it ended with {answer}")

        yield run
        assert child.stdin is not None
        child.stdin.close()


def _check(name: str, data: bytes, file: Path, parts: dict[str, bytes], said: bytes) -> None:
    """Write a file and check it as a load does; what is no archive or JSON is refused by the load around it."""
    if name == "skops":
        length = int.from_bytes(data[:2], "little")
        replaced = {**parts, _nodes_file(said): data[2 + length :], "schema.json": data[2 : 2 + length]}
        with zipfile.ZipFile(file, "w") as archive:
            for part, content in replaced.items():
                archive.writestr(part, content)
        try:
            schema.check(file, frozenset())
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError, zipfile.BadZipFile) as error:
            raise ModelError(str(error)) from error
        return
    file.write_bytes(data)
    if name == "lightgbm":
        lightgbm_file.read_head(file)
    else:
        xgboost_file.check(data if data.startswith(b"{") else b"", file.name)


def _load(backend: str, file: Path) -> None:
    signal.alarm(_SECONDS)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        model = registry.find(backend, None, {}).load(file, BackendOptions({}))
        spec = model.signature.inputs[0]
        for value in (0, 1e30, float("nan")):
            model.run([np.full((2, spec.shape[1]), value, spec.datatype.dtype)])  # type: ignore[union-attr]
    except Exception:
        pass


def main() -> None:
    backend = sys.argv[1]
    registry.find(backend, None, {})
    out = os.dup(1)
    os.dup2(2, 1)  # libraries write to it
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            _load(backend, Path(line.strip()))
            os._exit(0)
        os.write(out, f"{os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}\n".encode())


if __name__ == "__main__":
    main()
