"""The same asked of every backend: what it loads, says, answers and refuses, and that it gives back what it took."""

import dataclasses
import gc
import importlib.util
import sys
import tracemalloc
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from serving_runtime.backends import registry
from serving_runtime.common.datatypes import Array
from serving_runtime.common.errors import BackendError, ModelError
from serving_runtime.config import text
from serving_runtime.config.model import BackendOptions
from serving_runtime.engine.catalog import repository
from serving_runtime.engine.inspection import model as telling
from serving_runtime.engine.loading import load_model
from serving_runtime.engine.loading.load_model import OpenedModel
from serving_runtime.engine.loading.settings import LoadSettings
from serving_runtime.engine.memory import process_memory
from tests.serving_runtime._support.conformance import CASES, Case, Expected, rows
from tests.serving_runtime.devices import nvidia

SETTINGS = LoadSettings(allow_python_models=True)


@dataclasses.dataclass(frozen=True)
class Made:
    """A case's files in a model's folder, and what its library answers."""

    case: Case
    folder: Path
    expected: Expected

    @property
    def file(self) -> Path:
        return self.folder / "1" / self.case.file

    def options(self, **parameters: str) -> BackendOptions:
        written = BackendOptions.from_message(text.read(self.folder / "config.pbtxt", "model"))
        return dataclasses.replace(
            written, parameters={**written.parameters, **parameters}, gpu=self.case.gpu, allow_python_models=True
        )

    def load(self, **parameters: str) -> Any:
        return registry.find(self.case.backend, None, {}).load(self.file, self.options(**parameters))

    def given(self, count: int) -> Array:
        return rows(count, self.case.inputs[0][1])


def kinds() -> Iterator[Any]:
    """Yield the cases whose libraries are there: all but torch always are; test_pytorch.py tells where it is not."""
    for name, case in CASES.items():
        if case.library != "torch":
            yield name
        elif importlib.util.find_spec("torch") is not None:
            yield pytest.param(name, marks=pytest.mark.torch)


@pytest.fixture(scope="module", params=kinds(), name="made")
def one_of_each_kind(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    case = CASES[request.param]
    folder = tmp_path_factory.mktemp(case.backend) / "model"
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text(case.config)
    with nvidia.machine("whole") if case.gpu is not None else nullcontext():
        yield Made(case, folder, case.make(folder / "1"))


def opened(folder: Path) -> OpenedModel:
    plan = load_model.plan(repository.model_folder(folder), SETTINGS)
    return load_model.open_versions(plan, (1,), SETTINGS, {})[1]


def close_enough(found: Sequence[Array], expected: Sequence[Array]) -> None:
    assert len(found) == len(expected)
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.shape == theirs.shape
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)


def test_its_files_alone_say_which_backend_it_is_and_what_it_takes_and_gives(made: Made) -> None:
    found = opened(made.folder)
    assert found.message.backend == made.case.backend
    told = telling.inspect(made.folder, SETTINGS)
    for kind, expected in (("inputs", made.case.inputs), ("outputs", made.case.outputs)):
        assert [(tensor["name"], tensor["datatype"], tensor["shape"]) for tensor in told[kind]] == expected
    assert told["platform"]
    found.model.close()


def test_rows_are_joined_to_batches_where_nobody_says_otherwise(made: Made) -> None:
    found = opened(made.folder)
    assert found.config.max_batch_size >= 4
    assert found.config.batching is not None
    found.model.close()


@pytest.mark.feature("B2")
def test_it_answers_what_its_library_answers(made: Made) -> None:
    model = made.load()
    given = made.given(50)
    close_enough(model.run([given]), made.expected(given))
    for output, spec in zip(model.run([given]), model.signature.outputs, strict=True):
        assert output.dtype == spec.datatype.dtype


def test_a_batch_answers_what_its_rows_answer_alone(made: Made) -> None:
    model = made.load()
    given = made.given(7)
    alone = [model.run([given[row : row + 1]]) for row in range(len(given))]
    together = model.run([given])
    close_enough([np.concatenate(parts) for parts in zip(*alone, strict=True)], together)


def test_rows_that_lie_in_a_larger_array_are_taken_as_they_are(made: Made) -> None:
    model = made.load()
    given = made.given(9)
    close_enough(model.run([given[2:7]]), [array[2:7] for array in model.run([given])])
    given.setflags(write=False)  # as views of a request's bytes are
    close_enough(model.run([given[2:7]]), [array[2:7] for array in model.run([given])])


def test_several_threads_may_run_it_at_once(made: Made) -> None:
    model = made.load()
    given = [made.given(count) for count in range(1, 9)] * 8
    with ThreadPoolExecutor(4) as threads:
        for found, asked in zip(threads.map(lambda asked: model.run([asked]), given), given, strict=True):
            close_enough(found, made.expected(asked))


def test_a_failing_run_is_the_models_error_in_one_line(made: Made) -> None:
    model = made.load()
    with pytest.raises(BackendError, match=r"^the model failed: ") as caught:
        model.run([made.given(2)[:, :3]])
    assert "\n" not in str(caught.value)
    close_enough(model.run([made.given(2)]), made.expected(made.given(2)))


@pytest.mark.parametrize("damage", ["empty", "text", "half", "gone"])
def test_a_damaged_file_refuses_the_load_in_one_line_that_names_it(made: Made, damage: str, tmp_path: Path) -> None:
    content = made.file.read_bytes()
    damaged = {"empty": b"", "text": b"not a model\n", "half": content[: len(content) // 2]}
    file = tmp_path / made.case.file
    for other in made.file.parent.iterdir():
        (tmp_path / other.name).write_bytes(other.read_bytes())
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes(damaged[damage])
    with pytest.raises(ModelError) as caught:
        registry.find(made.case.backend, None, {}).load(file, made.options())
    assert made.case.file in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 800


def test_a_parameter_that_it_does_not_know_refuses_the_load_by_name(made: Made) -> None:
    with pytest.raises(ModelError, match=f"parameter 'colour' is unknown to the {made.case.backend} backend; known "):
        made.load(colour="red")


def test_a_setting_that_it_does_not_know_is_refused_by_name(made: Made) -> None:
    with pytest.raises(ModelError, match=f"--backend-config={made.case.backend},colour: unknown setting; known are "):
        registry.find(made.case.backend, None, {"colour": "red"})


def test_without_its_library_it_names_the_package_to_install(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    known = registry.BUILT_IN[made.case.backend]
    package = f"serving_runtime.backends.{known.module.removesuffix('.backend')}"
    for name in [name for name in sys.modules if name.startswith(package)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, made.case.library, None)
    with pytest.raises(ModelError) as caught:
        opened(made.folder)
    assert str(caught.value) == (
        f"model 'model' version 1: backend '{made.case.backend}' needs the package {made.case.library}, which is not "
        f"installed; run: pip install 'fairlead[{known.extra}]'"
    )


def test_unloading_gives_its_memory_back(made: Made) -> None:
    """What a leak of every model's own would take is the yardstick."""
    loads = 40
    weights_bytes = max(sum(file.stat().st_size for file in made.file.parent.iterdir()), 100_000)

    def load_and_unload(times: int) -> int:
        for _ in range(times):
            model = made.load()
            model.run([made.given(4)])
            model.close()
        gc.collect()
        process_memory.give_back()
        return process_memory.resident_bytes()

    before = load_and_unload(10)
    assert load_and_unload(loads) - before < loads * weights_bytes / 3


def test_a_run_copies_its_inputs_no_more_often_than_it_must(made: Made) -> None:
    model = made.load()
    given = made.given(50_000)
    outputs_bytes = sum(array.nbytes for array in model.run([given]))
    tracemalloc.start()
    try:
        model.run([given])
        _, most_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most_bytes < made.case.copies * given.nbytes + outputs_bytes + 100_000


def test_profile_measures_it(made: Made) -> None:
    told = telling.profile(made.folder)
    assert all(batch["latency_p50_us"] > 0 for batch in told["batches"])
