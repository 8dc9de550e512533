"""`:predict` of the V1 protocol asked of a model of every backend, in one server."""

import importlib.util
from collections.abc import Iterator

import httpx
import numpy as np
import pytest

from tests.serving_runtime._support.conformance import CASES, Expected, rows
from tests.serving_runtime._support.processes import ServerProcess, server

NAMES = [name for name, case in CASES.items() if importlib.util.find_spec(case.library.partition(".")[0]) is not None]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ServerProcess, dict[str, Expected]]]:
    scratch = tmp_path_factory.mktemp("v1")
    expected = {}
    for name in NAMES:
        folder = scratch / "models" / name.replace(" ", "-")
        (folder / "1").mkdir(parents=True)
        (folder / "config.pbtxt").write_text(CASES[name].config)
        expected[name] = CASES[name].make(folder / "1")
    with server(scratch / "models", "--allow-python-models=true", scratch=scratch) as process:
        yield process, expected


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.feature("V1a")
def test_rows_are_instances_and_what_the_library_answers_are_predictions(
    served: tuple[ServerProcess, dict[str, Expected]], name: str
) -> None:
    process, expected = served
    case = CASES[name]
    given = rows(3, case.inputs[0][1])
    url = f"{process.url}/v1/models/{name.replace(' ', '-')}:predict"
    answer = httpx.post(url, json={"instances": given.tolist()}, timeout=60)
    assert answer.status_code == 200, answer.text
    predictions = answer.json()["predictions"]
    named = [output for output, _, _ in case.outputs]
    for number, (output, wanted) in enumerate(zip(named, expected[name](given), strict=True)):
        found = predictions if len(named) == 1 else [row[output] for row in predictions]
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5, err_msg=f"output {number}")
