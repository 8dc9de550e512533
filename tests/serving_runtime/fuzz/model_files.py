"""Files of models that are fuzzed: what passes the runtime's own checks is loaded and run inside the sandbox.

The checks run here, where the fuzzer sees what they cover. What they let pass goes to `loader.py`, which imports the
library once and forks for each file, in the sandbox of a model's check: no network, and no files but the model's.
"""

import hashlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from integrations.clusters.local.confinement import confined, private
from integrations.sandbox.command import command
from integrations.sandbox.policy import NetworkAccess
from serving_runtime.backends.onnx import sizes
from serving_runtime.backends.onnx.file import read_header
from serving_runtime.backends.sklearn.estimators import schema
from serving_runtime.backends.trees import lightgbm_file, xgboost_file
from serving_runtime.common.errors import ModelError
from tests.serving_runtime import onnx_models
from tests.serving_runtime.fuzz import loader, onnx_graphs

BACKENDS = {"xgboost": "xgboost", "lightgbm": "lightgbm", "skops": "sklearn", "onnx": loader.ONNX}
"""Targets, each with the backend that loads what passes."""

MAX_LEN = 1 << 16

SURVIVED = frozenset(BACKENDS) - {"onnx"}
"""Targets whose files may not end the process that loads them: ONNX Runtime is not checked for what it follows."""

_FILES = {
    "xgboost": "xgboost.json",
    "lightgbm": "model.txt",
    "skops": "model.skops",
    "onnx": "fuzzed/1/model.onnx",
}
_SAID = {
    loader.UNEXPECTED: "raised an error that is not the runtime's",
    loader.GREEDY: f"took more than the {loader.BUDGET_BYTES >> 20} MiB that models may take, and was not refused",
}
_RAW, _BUILT = b"\x00", b"\x01"
"""First byte of the bytes for ONNX: the rest is a file, or choices of `onnx_graphs`."""
_WITH_SCHEMA = b"\1"
"""First byte of the bytes for skops where a schema comes before the nodes of a tree, after its length in two bytes."""
_NODES = "nodes"
_MOST_KEPT = 10
"""Files that ended the process and may do so."""


class FileFindingError(AssertionError):
    """A file that passed the checks ended the process that loaded it, or broke what a load promises."""


class ModelFiles:
    """Checks files and has them loaded.

    Attributes:
        outcomes: how many files the checks refused ("unread"), the load refused ("refused") and ran ("ran"), and by
            which signals processes ended that a file may end.
    """

    def __init__(self, name: str, folder: Path, findings: Path, load: Callable[[Path], int]) -> None:
        self.outcomes: Counter[str] = Counter()
        self._name = name
        self._file = folder / _FILES[name]
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._findings = findings
        self._load = load
        self._schema, self._parts = _skops() if name == "skops" else (b"", {})

    def run(self, data: bytes) -> None:
        """Check and load a file; raises FileFindingError, and whatever the checks raise but ModelError."""
        try:
            self._check(data)
        except ModelError:
            self._count("unread")
            return
        ended = self._load(self._file)
        if ended in (loader.RAN, loader.REFUSED):
            self._count("ran" if ended == loader.RAN else "refused")
            return
        if ended >= 0:
            raise FileFindingError(f"{self._kept()} {_SAID[ended]}")
        by = signal.Signals(-ended).name
        if self._name in SURVIVED:
            raise FileFindingError(f"{self._kept()} ended the process that loaded it ({by})")
        self._count(by)
        if self.outcomes[by] <= _MOST_KEPT:
            self._kept()

    def _count(self, outcome: str) -> None:
        """Count an outcome, and leave all counts in a file: nothing else is written when the fuzzer ends."""
        self.outcomes[outcome] += 1
        outcomes_file(self._findings, self._name).write_text(json.dumps(self.outcomes))

    def _kept(self) -> Path:
        """Return a copy of the file that stays."""
        digest = hashlib.sha256(self._file.read_bytes()).hexdigest()[:16]
        kept = self._findings / f"{self._name}-{digest}{self._file.suffix}"
        shutil.copyfile(self._file, kept)
        return kept

    def _check(self, data: bytes) -> None:
        """Write a file and check it as a load does; what is no archive or JSON is refused by the load around it."""
        file = self._file
        if self._name == "onnx":
            file.write_bytes(onnx_graphs.built(data[1:]) if data[:1] == _BUILT else data[1:])
            read_header(file)
            sizes.check(file, loader.BUDGET_BYTES)
        elif self._name == "skops":
            self._check_skops(data)
        elif self._name == "lightgbm":
            file.write_bytes(data)
            lightgbm_file.read_head(file)
        else:
            file.write_bytes(data)
            xgboost_file.check(data if data.startswith(b"{") else b"", file.name)

    def _check_skops(self, data: bytes) -> None:
        schema_bytes, nodes = self._schema, data[1:]
        if data[:1] == _WITH_SCHEMA:
            length = int.from_bytes(data[1:3], "little")
            schema_bytes, nodes = data[3 : 3 + length], data[3 + length :]
        replaced = {**self._parts, _nodes_file(self._schema): nodes, "schema.json": schema_bytes}
        with zipfile.ZipFile(self._file, "w") as archive:
            for part, content in replaced.items():
                archive.writestr(part, content)
        try:
            schema.check(self._file, frozenset())
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError, zipfile.BadZipFile) as error:
            raise ModelError(str(error)) from error


def outcomes_file(findings: Path, name: str) -> Path:
    """Return where the counts of a target are left."""
    return findings / f"{name}.outcomes.json"


@contextmanager
def target(name: str, scratch: Path, findings: Path) -> Iterator[ModelFiles]:
    """Give what runs any bytes as a model file; what it finds is left in `findings`."""
    files, own = scratch / "repository", scratch / "own"
    files.mkdir()
    own.mkdir()
    with loading(BACKENDS[name], files, own) as load:
        yield ModelFiles(name, files, findings, load)


@contextmanager
def loading(backend: str, files: Path, own: Path) -> Iterator[Callable[[Path], int]]:
    """Give what loads a file inside the sandbox and returns how that ended: see `loader`.

    Args:
        files: the folder that is seen there.
        own: one that can be written to.
    """
    program = [sys.executable, "-I", loader.__file__, backend]
    sandbox = confined(program, read=[files], write=[own], network=NetworkAccess.NONE)
    inside = command(program, sandbox=sandbox, limits={"core": 0}, folder=str(own))
    environment = {"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1", **private(own)}
    with subprocess.Popen(
        inside, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, env=environment
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        asked, answers = child.stdin, child.stdout

        def load(file: Path) -> int:
            asked.write(f"{file}\n")
            answer = answers.readline().strip()
            if not answer:
                raise RuntimeError("the process that loads files ended")
            return int(answer)

        yield load
        asked.close()


def seeds(target: str) -> tuple[bytes, ...]:
    """Return honest models: those of skops as the nodes of a tree, and with its schema."""
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
    if target == "onnx":
        return _onnx()
    said, parts = _skops()
    nodes = parts[_nodes_file(said)]
    return b"\0" + nodes, _WITH_SCHEMA + len(said).to_bytes(2, "little") + said + nodes


def _onnx() -> tuple[bytes, ...]:
    """Return honest graphs, one that grows as it runs, and choices for others."""
    float_, node = TensorProto.FLOAT, helper.make_node
    rows = ("N", 4)
    side = numpy_helper.from_array(np.array([100, 100], "i8"), "side")
    grown = [
        node("ReduceSum", ["x"], ["zero"], keepdims=0),
        node("Cast", ["zero"], ["whole"], to=TensorProto.INT64),
        node("Add", ["whole", "side"], ["shape"]),
        node("ConstantOfShape", ["shape"], ["large"]),
        node("ReduceSum", ["large"], ["sum"], keepdims=0),
        node("Add", ["x", "sum"], ["y"]),
    ]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.onnx"
        made = [
            onnx_models.mlp(file, (4, 3)).read_bytes(),
            onnx_models.identity(file, TensorProto.STRING).read_bytes(),
            onnx_models.save(
                file, grown, [("x", float_, rows)], [("y", float_, rows)], initializers=[side]
            ).read_bytes(),
        ]
    random = np.random.default_rng(5)
    return (*(_RAW + content for content in made), *(_BUILT + random.bytes(48) for _ in range(40)))


@cache  # the archive's parts have other names each time
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
