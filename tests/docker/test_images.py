"""The images do their work as a user without rights, on a root file system that cannot be written."""

from pathlib import Path

import numpy as np
import pytest

from tests.docker._support.built import BUILT
from tests.docker.containers import HOME, KEY, SAFE, answer, image, infer, needs, serving, web
from tests.docker.engine import Engine
from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.conformance import CASES, rows

pytestmark = pytest.mark.images

SERVING = [name for name in BUILT if name != "control-plane"]
PLATFORMS = [name for name in BUILT if not name.startswith("runtime-")]
IN_NO_IMAGE = ("torch", "tensorrt")


@pytest.mark.parametrize("name", SERVING)
def test_it_answers_a_v2_request_and_stops_in_order(docker: Engine, name: str, tmp_path: Path) -> None:
    (tmp_path / "models" / "same" / "1").mkdir(parents=True)
    onnx_models.identity(tmp_path / "models" / "same" / "1" / "model.onnx")
    given = np.arange(4, dtype="f4").reshape(1, 4)
    with serving(docker, name, tmp_path) as (container, url):
        assert infer(url, "same", given, ["y"])[0].tolist() == given.tolist()
        docker.docker("stop", "--time", "60", container)
        assert docker.docker("inspect", "--format", "{{.State.ExitCode}}", container) == "0"


@pytest.mark.parametrize("name", SERVING)
def test_it_serves_every_format_but_torchs_and_tensorrts(docker: Engine, name: str, tmp_path: Path) -> None:
    cases = {kind.replace(" ", "-"): case for kind, case in CASES.items() if case.library not in IN_NO_IMAGE}
    expected = {}
    for model, case in cases.items():
        folder = tmp_path / "models" / model
        (folder / "1").mkdir(parents=True)
        (folder / "config.pbtxt").write_text(case.config)
        expected[model] = case.make(folder / "1")
    with serving(docker, name, tmp_path) as (_, url):
        for model, case in cases.items():
            given = rows(3, case.inputs[0][1])
            answered = infer(url, model, given, [output for output, _, _ in case.outputs])
            for mine, theirs in zip(answered, expected[model](given), strict=True):
                np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5, err_msg=model)


@pytest.mark.parametrize("name", PLATFORMS)
def test_web_answers_when_its_database_is_there(docker: Engine, name: str) -> None:
    with web(docker, name) as (_, url):
        assert answer(f"{url}/healthz").json() == {"live": True}
        assert answer(f"{url}/readyz").json() == {"ready": True}
        page = answer(f"{url}/signin/").text
        script = page.partition('src="')[2].partition('"')[0]
        assert answer(f"{url}{script}").status_code == 200, "the pages' script is in the image"


@pytest.mark.parametrize(
    "command",
    [
        ["celery", "-A", "fairlead", "worker", "--help"],
        ["fairlead", "--help"],
        ["python", "-c", "import django; django.setup(); import integrations.clusters.kubernetes.driver, s3fs, gcsfs"],
        ["python", "-c", "import kombu.transport.redis, psycopg2"],
        ["python", "-m", "serving_runtime", "check-config", "--help"],
    ],
    ids=" ".join,
)
def test_the_control_plane_has_its_programs(docker: Engine, command: list[str]) -> None:
    needs("control-plane")
    docker.docker("run", "--rm", *SAFE, HOME, *KEY, image("control-plane"), *command)
